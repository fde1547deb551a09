/** Writes a turn as a task of A2A: its pieces are updates of one artifact, the answer. */
import type { Failure } from '../../errors'
import { textOf } from '../../lib/parts'
import type { Turn } from '../../turn/fold'
import { type RpcId, rpcResult } from '../http/json-rpc'
import { type SourceFields, sourcesOf } from '../shared/sources'
import { frame, type TurnEncoder, turnEncoder } from '../shared/stream'

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

/** @param context the id of the turn's conversation, as the client knows it */
export const taskEncoder = (id: RpcId, fields: SourceFields, context: string): TurnEncoder =>
  turnEncoder((turn) => {
    let isWritten = false
    const write = (result: unknown): string => frame(rpcResult(id, result))
    const place = () => ({ taskId: taskId(context, turn), contextId: context })
    const status = (given: Record<string, unknown>): string =>
      write({ statusUpdate: { ...place(), status: given } })
    return {
      question: () => write({ task: task(context, taskId(context, turn), 'TASK_STATE_WORKING') }),
      delta: ({ text }) => {
        if (text === '') return ''
        const append = isWritten
        isWritten = true
        return write({ artifactUpdate: { ...place(), artifact: artifact(text), append } })
      },
      // The sources come with the last piece.
      done: () => {
        const last = artifact('', metadataOf(turn, fields))
        const update = { ...place(), artifact: last, append: isWritten, lastChunk: true }
        return write({ artifactUpdate: update }) + status({ state: 'TASK_STATE_COMPLETED' })
      },
      fail: (failure) => status(failureOf(taskId(context, turn), failure)),
    }
  })
