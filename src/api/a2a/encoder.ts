/** Writes a turn as a task of A2A: its pieces are updates of one artifact, the answer. */
import type { Failure } from '../../errors'
import { textOf } from '../../lib/parts'
import type { TurnEvent } from '../../turn/events'
import { emptyTurn, fold, type Turn } from '../../turn/fold'
import { type RpcId, rpcResult } from '../http/json-rpc'
import { type SourceFields, sourcesOf } from '../shared/sources'
import type { TurnEncoder } from '../shared/stream'

const taskId = (context: string, { turn }: Pick<Turn, 'turn'>): string => `${context}.${turn}`

export const task = (contextId: string, id: string, state: string, more: Record<string, unknown> = {}) => ({
  id,
  contextId,
  status: { state },
  ...more,
})

const artifact = (text: string, metadata?: Record<string, unknown>) => ({
  artifactId: 'answer',
  parts: [{ text }],
  ...(metadata && { metadata }),
})

const metadataOf = ({ passages, suggestions }: Turn, fields: SourceFields) => ({
  sources: sourcesOf(passages, fields).map(({ id, title, url }) => ({ id, title, ...(url && { url }) })),
  ...(suggestions && { followups: suggestions }),
})

/** @param turn one that has ended @param context the id of its conversation, as the client knows it */
export function endedTask(turn: Turn, fields: SourceFields, context: string) {
  const id = taskId(context, turn)
  if (turn.error) return { id, contextId: context, status: failureOf(id, turn.error) }
  return task(context, id, 'TASK_STATE_COMPLETED', {
    artifacts: [artifact(textOf(turn.answer), metadataOf(turn, fields))],
  })
}

/** The status of a task without an answer. */
function failureOf(id: string, { code, message }: Failure) {
  if (code === 'stopped') return { state: 'TASK_STATE_CANCELED' }
  const said = { messageId: `${id}.error`, role: 'ROLE_AGENT', parts: [{ text: message }] }
  return { state: 'TASK_STATE_FAILED', message: said }
}

export class TaskEncoder implements TurnEncoder {
  readonly #id: RpcId
  readonly #fields: SourceFields
  readonly #context: string
  readonly #turn: Turn = emptyTurn()
  #written = false
  /** an update of the artifact, before and after its text */
  #before = ''
  #after = ''

  /** @param context the id of the turn's conversation, as the client knows it */
  constructor(id: RpcId, fields: SourceFields, context: string) {
    this.#id = id
    this.#fields = fields
    this.#context = context
  }

  encode(event: TurnEvent): string {
    fold(this.#turn, event)
    switch (event.type) {
      case 'question':
        this.#begin()
        return this.#frame({
          task: task(this.#context, taskId(this.#context, this.#turn), 'TASK_STATE_WORKING'),
        })
      case 'delta':
        return this.#piece(event.text)
      case 'done':
        return this.#last() + this.#status({ state: 'TASK_STATE_COMPLETED' })
      default:
        return ''
    }
  }

  fail(failure: Failure): string {
    return this.#status(failureOf(taskId(this.#context, this.#turn), failure))
  }

  /** Prepares the text that all pieces but the first have in common. */
  #begin(): void {
    const mark = '\u0000'
    const [before = '', after = ''] = JSON.stringify(this.#update(mark, true)).split(JSON.stringify(mark))
    this.#before = `data: ${before}`
    this.#after = `${after}\n\n`
  }

  #piece(text: string): string {
    if (text === '') return ''
    if (this.#written) return `${this.#before}${JSON.stringify(text)}${this.#after}`
    this.#written = true
    return `data: ${JSON.stringify(this.#update(text, false))}\n\n`
  }

  /** The sources come with the last piece. */
  #last(): string {
    const last = artifact('', metadataOf(this.#turn, this.#fields))
    return this.#frame({
      artifactUpdate: { ...this.#place(), artifact: last, append: this.#written, lastChunk: true },
    })
  }

  #update(text: string, append: boolean) {
    return rpcResult(this.#id, {
      artifactUpdate: { ...this.#place(), artifact: artifact(text), append },
    })
  }

  #status(status: Record<string, unknown>): string {
    return this.#frame({ statusUpdate: { ...this.#place(), status } })
  }

  #place() {
    return { taskId: taskId(this.#context, this.#turn), contextId: this.#context }
  }

  #frame(result: unknown): string {
    return `data: ${JSON.stringify(rpcResult(this.#id, result))}\n\n`
  }
}
