/**
 * Upgrades logs of the versions before to the current format.
 *
 * In version 2, questions, answers and messages were strings; now they are parts. Version 1 also kept an engine's whole
 * replies in `retrieval`, listed the prompt's documents beside them, and sent the history with `done`. It had no operator
 * events, and its errors had no codes.
 */
import { contentOf, type Part } from '../parts'
import { withCode } from './errors'
import type { CutDocument, HistoryMessage, LogEvent, SearchReply, SourceReference } from './events'
import { passagesOf } from './passage'
import { hitsOf, scoreOf, summaryOf, withoutVectors } from './retrieve'

interface FirstRetrieval {
  replies: SearchReply[]
  sources: SourceReference[]
  cut?: CutDocument[]
}

export interface Upgraded {
  event: LogEvent
  /** the engine's replies, if the event held them */
  replies?: SearchReply[]
}

/** The format in which logs are written now. */
export const VERSION = 3

/**
 * Converts one event. It looks at the event's own fields, because the last events of an old log may be in the current
 * format: an interruption is added when the object wakes.
 * @param logged as it was logged @param version of its log
 */
export function upgrade(logged: LogEvent, version: number): Upgraded {
  if (version >= VERSION) return { event: logged }
  const event = inParts(logged)
  if (event.type === 'retrieval' && 'replies' in event) {
    return upgradeRetrieval(event as typeof event & FirstRetrieval)
  }
  if (event.type === 'done' && 'history' in event) {
    const { history: _, ...done } = event
    return { event: done }
  }
  if (event.type === 'error') return { event: withCode(event) }
  return { event }
}

const partsOf = (content: Part[] | string): Part[] =>
  typeof content === 'string' ? contentOf(content) : content

function inParts(event: LogEvent): LogEvent {
  switch (event.type) {
    case 'begin':
    case 'question':
      return { ...event, question: partsOf(event.question) }
    case 'done':
      return { ...event, answer: partsOf(event.answer) }
    case 'transcript':
      return { ...event, messages: event.messages.map(messageInParts) }
    default:
      return event
  }
}

function messageInParts(given: HistoryMessage & { message?: string }): HistoryMessage {
  const { message, ...said } = given
  return message === undefined ? said : { ...said, content: contentOf(message) }
}

function upgradeRetrieval(event: Extract<LogEvent, { type: 'retrieval' }> & FirstRetrieval): Upgraded {
  const { replies, sources, cut, type, conversation_id, turn, seq } = event
  const found = new Map(
    replies.flatMap((reply) => {
      if (!('result' in reply)) return []
      const collection = reply.result.request_params.collection_name
      return hitsOf(reply.result).map((hit) => {
        const source = { collection, document: withoutVectors(hit.document, []), score: scoreOf(hit) }
        return [JSON.stringify([collection, hit.document.id]), source] as const
      })
    }),
  )
  const documents = sources.map(
    ({ collection, document_id: id }) =>
      found.get(JSON.stringify([collection, id])) ?? { collection, document: { id } },
  )
  const searches = replies.map((reply) =>
    summaryOf(reply, 'result' in reply ? reply.result.request_params.collection_name : ''),
  )
  return {
    event: {
      type,
      passages: passagesOf(documents),
      searches,
      ...(cut && { cut }),
      conversation_id,
      turn,
      seq,
    },
    replies,
  }
}
