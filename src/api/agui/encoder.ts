/**
 * Writes a turn as events of AG-UI (contract 3.6):
 *
 *     RUN_STARTED · CUSTOM(sources) · TEXT_MESSAGE_START · …_CONTENT… · …_END · CUSTOM(followups) · RUN_FINISHED
 *
 * Clients fail on `[DONE]` and on anything after RUN_FINISHED or RUN_ERROR.
 */
import { textOf } from '../../lib/parts'
import { codeOf } from '../../turn/errors'
import { eventsOf, type Turn } from '../../turn/fold'
import { type AnswerSource, type SourceFields, sourcesOf } from '../shared/sources'
import { frame, type TurnEncoder, turnEncoder } from '../shared/stream'
import type { Run } from './request'

interface Message {
  id: string
  role: 'user' | 'assistant'
  content: string
}

/** @param earlier the thread's turns before, which have ended, for a client that reopens it; absent: it has their messages */
export const agUiEncoder = (run: Run, fields: SourceFields, earlier?: readonly Turn[]): TurnEncoder =>
  turnEncoder((turn) => {
    let isOpen = false
    const idOf = ({ conversationId, turn: number }: Turn): string => messageId(conversationId, number)
    const endText = (): string => {
      if (!isOpen) return ''
      isOpen = false
      return frame({ type: 'TEXT_MESSAGE_END', messageId: idOf(turn) })
    }
    const finish = (type: 'success' | 'cancelled'): string => {
      const { conversationId, turn: number, citations, verdict } = turn
      const result = { conversation_id: conversationId, turn: number, citations, ...verdict }
      return endText() + edge(run, 'RUN_FINISHED', { outcome: { type }, result })
    }
    return {
      question: () => begin(run, earlier, turn),
      retrieval: (_, known) => custom('sources', sourcesOf(turn.passages.slice(known), fields).map(shown)),
      delta: ({ text: delta }) => {
        if (delta === '') return ''
        const id = { messageId: idOf(turn) }
        const start = isOpen ? '' : frame({ type: 'TEXT_MESSAGE_START', ...id, role: 'assistant' })
        isOpen = true
        return start + frame({ type: 'TEXT_MESSAGE_CONTENT', ...id, delta })
      },
      part: ({ part }) => {
        if (part.type === 'tool_call') {
          const { id: toolCallId, name: toolCallName } = part
          return (
            endText() +
            frame({ type: 'TOOL_CALL_START', toolCallId, toolCallName, parentMessageId: idOf(turn) }) +
            frame({ type: 'TOOL_CALL_ARGS', toolCallId, delta: part.arguments }) +
            frame({ type: 'TOOL_CALL_END', toolCallId })
          )
        }
        if (part.type !== 'tool_result') return ''
        const messageId = `${idOf(turn)}.${part.id}`
        return frame({
          type: 'TOOL_CALL_RESULT',
          messageId,
          toolCallId: part.id,
          content: part.text,
          role: 'tool',
        })
      },
      followups: ({ questions }) => endText() + custom('followups', questions),
      done: () => finish('success'),
      // A stop ends a run as well. It is not an error.
      fail: (failure) => {
        const code = codeOf(failure)
        if (code === 'stopped') return finish('cancelled')
        return endText() + frame({ type: 'RUN_ERROR', message: failure.message, code })
      },
    }
  })

/** A thread in which nothing is being written: its messages, and what the client showed beside the last answer. */
export function reopened(run: Run, fields: SourceFields, earlier: readonly Turn[]): string {
  const last = earlier.at(-1)
  if (!last) return begin(run, earlier) + edge(run, 'RUN_FINISHED')
  const encoder = agUiEncoder(run, fields, earlier)
  const events = eventsOf(last).filter(({ type }) => type !== 'delta' && type !== 'part')
  return events.map((event) => encoder.encode(event)).join('')
}

/** @param turn the one that begins */
const begin = (run: Run, earlier?: readonly Turn[], turn?: Turn): string =>
  edge(run, 'RUN_STARTED') +
  (run.ignored.length === 0 ? '' : custom('ignored', run.ignored)) +
  (earlier ? frame({ type: 'MESSAGES_SNAPSHOT', messages: snapshot(earlier, turn) }) : '')

/** The messages of a thread, with the question whose answer is being written. */
function snapshot(ended: readonly Turn[], begun: Turn | undefined): Message[] {
  const isNew = begun && begun.question.length > 0 && ended.every(({ turn }) => turn !== begun.turn)
  return [...ended, ...(isNew ? [begun] : [])].flatMap(({ conversationId, turn, question, answer }) => {
    const id = messageId(conversationId, turn)
    const asked: Message = { id: `${id}.question`, role: 'user', content: textOf(question) }
    const said: Message = { id, role: 'assistant', content: textOf(answer) }
    return [asked, said].filter(({ content }) => content !== '')
  })
}

const edge = ({ thread, run }: Run, type: string, more: Record<string, unknown> = {}): string =>
  frame({ type, threadId: thread, runId: run, ...more })

const shown = ({ id, title, url, text }: AnswerSource) => ({ id, title, ...(url && { url }), text })

const custom = (name: string, value: unknown): string => frame({ type: 'CUSTOM', name, value })

/** The id of an answer, which names its turn. */
export const messageId = (conversationId: string, turn: number): string => `${conversationId}.${turn}`
