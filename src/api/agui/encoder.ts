/**
 * Writes a turn as events of AG-UI (contract 3.6):
 *
 *     RUN_STARTED · CUSTOM(sources) · TEXT_MESSAGE_START · …_CONTENT… · …_END · CUSTOM(followups) · RUN_FINISHED
 *
 * Clients fail on `[DONE]` and on anything after RUN_FINISHED or RUN_ERROR.
 */
import type { Failure } from '../../errors'
import { textOf } from '../../lib/parts'
import { codeOf } from '../../turn/errors'
import type { TurnEvent } from '../../turn/events'
import { emptyTurn, eventsOf, fold, type Turn } from '../../turn/fold'
import { type AnswerSource, type SourceFields, sourcesOf } from '../shared/sources'
import type { TurnEncoder } from '../shared/stream'
import type { Run } from './request'

export const frame = (event: Record<string, unknown>): string => `data: ${JSON.stringify(event)}\n\n`

interface Message {
  id: string
  role: 'user' | 'assistant'
  content: string
}

export class AgUiEncoder implements TurnEncoder {
  readonly #run: Run
  readonly #fields: SourceFields
  readonly #earlier: readonly Turn[] | undefined
  readonly #turn: Turn = emptyTurn()
  /** a content event up to its text; undefined: no message is open */
  #before: string | undefined

  /** @param earlier the thread's turns before, which have ended, for a client that reopens it; absent: it has their messages */
  constructor(run: Run, fields: SourceFields, earlier?: readonly Turn[]) {
    this.#run = run
    this.#fields = fields
    this.#earlier = earlier
  }

  encode(event: TurnEvent): string {
    const known = this.#turn.passages.length
    fold(this.#turn, event)
    switch (event.type) {
      case 'question':
        return this.#begin()
      case 'retrieval':
        return custom('sources', sourcesOf(this.#turn.passages.slice(known), this.#fields).map(shown))
      case 'delta':
        return this.#write(event.text)
      case 'followups':
        return this.#endText() + custom('followups', event.questions)
      case 'done':
        return this.#endText() + this.#finish('success')
      default:
        return ''
    }
  }

  /** A thread in which nothing is being written: its messages, and what the client showed beside the last answer. */
  reopened(): string {
    const last = this.#earlier?.at(-1)
    if (!last) return this.#begin() + this.#edge('RUN_FINISHED')
    const events = eventsOf(last).filter(({ type }) => type !== 'delta' && type !== 'part')
    return events.map((event) => this.encode(event)).join('')
  }

  /** A stop ends a run as well. It is not an error. */
  fail(failure: Failure): string {
    const code = codeOf(failure)
    if (code === 'stopped') return this.#endText() + this.#finish('cancelled')
    return this.#endText() + frame({ type: 'RUN_ERROR', message: failure.message, code })
  }

  #begin(): string {
    const { ignored } = this.#run
    return (
      this.#edge('RUN_STARTED') +
      (ignored.length === 0 ? '' : custom('ignored', ignored)) +
      (this.#earlier === undefined ? '' : frame({ type: 'MESSAGES_SNAPSHOT', messages: this.#snapshot() }))
    )
  }

  /** The messages of the thread, with the question whose answer is being written. */
  #snapshot(): Message[] {
    const ended = this.#earlier ?? []
    const isNew = this.#turn.question.length > 0 && ended.every(({ turn }) => turn !== this.#turn.turn)
    return [...ended, ...(isNew ? [this.#turn] : [])].flatMap(
      ({ conversationId, turn, question, answer }) => {
        const id = messageId(conversationId, turn)
        const asked: Message = { id: `${id}.question`, role: 'user', content: textOf(question) }
        const said: Message = { id, role: 'assistant', content: textOf(answer) }
        return [asked, said].filter(({ content }) => content !== '')
      },
    )
  }

  #finish(type: 'success' | 'cancelled'): string {
    const { conversationId, turn, citations, verdict } = this.#turn
    const result = { conversation_id: conversationId, turn, citations, ...verdict }
    return this.#edge('RUN_FINISHED', { outcome: { type }, result })
  }

  #edge(type: string, more: Record<string, unknown> = {}): string {
    return frame({ type, threadId: this.#run.thread, runId: this.#run.run, ...more })
  }

  #write(text: string): string {
    if (text === '') return ''
    const id = messageId(this.#turn.conversationId, this.#turn.turn)
    const opened = this.#before === undefined
    this.#before ??= `data: {"type":"TEXT_MESSAGE_CONTENT","messageId":${JSON.stringify(id)},"delta":`
    const content = `${this.#before}${JSON.stringify(text)}}\n\n`
    return opened
      ? frame({ type: 'TEXT_MESSAGE_START', messageId: id, role: 'assistant' }) + content
      : content
  }

  #endText(): string {
    if (this.#before === undefined) return ''
    this.#before = undefined
    return frame({
      type: 'TEXT_MESSAGE_END',
      messageId: messageId(this.#turn.conversationId, this.#turn.turn),
    })
  }
}

const shown = ({ id, title, url, text }: AnswerSource) => ({ id, title, ...(url && { url }), text })

const custom = (name: string, value: unknown): string => frame({ type: 'CUSTOM', name, value })

/** The id of an answer, which names its turn. */
export const messageId = (conversationId: string, turn: number): string => `${conversationId}.${turn}`
