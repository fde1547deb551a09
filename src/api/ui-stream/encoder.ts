/**
 * Writes a turn as a UI message stream of version 1 (contract 3.2). Pure, but it remembers which part is open.
 *
 *     start · start-step · source-*… · text-start · text-delta… · text-end · data-suggestions · finish-step · finish
 *
 * Parts only have keys that the first client of this protocol knew: it fails on any other. What Parley adds is in the message's
 * metadata, which is free for the application.
 */
import type { Failure } from '../../errors'
import type { ToolCallPart, ToolResultPart } from '../../lib/parts'
import { argumentsOf } from '../../models/language-model'
import type { Citation, Wording } from '../../turn/events'
import type { CalledTool, Turn } from '../../turn/fold'
import { type AnswerSource, CitationLinks, type SourceFields, sourceId, sourcesOf } from '../shared/sources'
import { eventWording, frame, HEARTBEAT_MS, type TurnEncoder, turnEncoder } from '../shared/stream'
import { messageId } from './request'

export interface UiStreamShape {
  fields: SourceFields
  /** `markdown` turns citations in the text into links; `parts` leaves the text as it is */
  citations: 'parts' | 'markdown'
  /** id of the message that goes on; absent: one begins */
  message?: string | undefined
}

const DONE = 'data: [DONE]\n\n'

/** How the conversation's object writes the pieces of an answer whose citations are parts. */
export const TEXT_DELTA_WORDING = eventWording([
  'data: {"type":"text-delta","id":"text-1","delta":"',
  { slot: 'text' },
  '"}\n\n',
])

export const uiStreamEncoder = ({ fields, citations, message }: UiStreamShape): TurnEncoder =>
  turnEncoder((turn) => {
    const links = citations === 'markdown' ? new CitationLinks() : undefined
    /** id of the open text part */
    let open: string | undefined
    let texts = 0
    /** whether results of tools have ended a step */
    let isStepOver = false
    const nextStep = (): string => {
      if (!isStepOver) return ''
      isStepOver = false
      return frame({ type: 'finish-step' }) + frame({ type: 'start-step' })
    }
    const write = (delta: string): string => {
      if (delta === '') return ''
      const begun = open === undefined
      open ??= `text-${++texts}`
      const piece = frame({ type: 'text-delta', id: open, delta })
      return begun ? frame({ type: 'text-start', id: open }) + piece : piece
    }
    const endText = (): string => {
      const rest = links ? write(links.end()) : ''
      if (open === undefined) return rest
      const end = frame({ type: 'text-end', id: open })
      open = undefined
      return rest + end
    }
    return {
      question: (event) => {
        const messageMetadata = { conversation_id: event.conversation_id }
        return (
          frame({ type: 'start', messageId: message ?? messageId(event), messageMetadata }) +
          frame({ type: 'start-step' })
        )
      },
      retrieval: (_, known) => {
        // Sources are numbered through all retrievals of a turn.
        links?.cite(sourcesOf(turn.passages, fields))
        return sourcesOf(turn.passages.slice(known), fields)
          .map((source) => frame(sourcePart(source)))
          .join('')
      },
      delta: ({ text }) => nextStep() + write(links ? links.add(text) : text),
      part: ({ part }) => {
        if (part.type === 'tool_call') return endText() + nextStep() + toolParts(part).map(frame).join('')
        if (part.type !== 'tool_result') return ''
        isStepOver = true
        return frame(resultPart(part))
      },
      followups: ({ questions }) => endText() + frame(suggestionsPart(questions)),
      done: () =>
        endText() +
        frame({ type: 'finish-step' }) +
        frame({ type: 'finish', messageMetadata: metadataOf(turn) }) +
        DONE,
      // Clients treat a stream that just ends as a success, so a failure is always written.
      fail: (failure) => endText() + frame(endOf(failure)) + DONE,
    }
  })

export const sourcePart = ({ id, title, url, documentId }: AnswerSource) =>
  url === undefined
    ? { type: 'source-document', sourceId: id, mediaType: 'text/plain', title, filename: documentId }
    : { type: 'source-url', sourceId: id, url, title }

/** A call of a tool: its input, and the request for leave where it needs that. */
const toolParts = ({ id: toolCallId, name: toolName, awaits, ...call }: ToolCallPart) => [
  { type: 'tool-input-available', toolCallId, toolName, input: argumentsOf(call), dynamic: true },
  ...(awaits === 'leave' ? [{ type: 'tool-approval-request', approvalId: toolCallId, toolCallId }] : []),
]

const resultPart = ({ id: toolCallId, text, failed }: ToolResultPart) =>
  failed
    ? { type: 'tool-output-error', toolCallId, errorText: text, dynamic: true }
    : { type: 'tool-output-available', toolCallId, output: text, dynamic: true }

/** The same in a message that is read again. */
export function calledPart({ id, name: toolName, awaits, result, failed, ...call }: CalledTool) {
  const state =
    result === undefined
      ? awaits === 'leave'
        ? { state: 'approval-requested', approval: { id } }
        : { state: 'input-available' }
      : failed
        ? { state: 'output-error', errorText: result }
        : { state: 'output-available', output: result }
  return { type: 'dynamic-tool', toolName, toolCallId: id, input: argumentsOf(call), ...state }
}

export const suggestionsPart = (suggestions: string[]) => ({
  type: 'data-suggestions',
  data: { suggestions },
})

export const metadataOf = ({
  conversationId,
  turn,
  finishReason,
  usage,
  timings,
  citations,
  verdict,
}: Turn) => ({
  conversation_id: conversationId,
  turn,
  finish_reason: finishReason,
  usage,
  timings,
  citations: citations.map(citationOf),
  ...verdict,
})

/** Offsets are in the text without links. */
const citationOf = ({ collection, document_id, start, end, quote }: Citation) => ({
  sourceId: sourceId(collection, document_id),
  start,
  end,
  quote,
})

// =============================================================================
// POST /ui/{assistant}/text: an answer as plain text, for `TextStreamChatTransport` and `useCompletion` of the AI SDK.

/** How the conversation's object writes the pieces of an answer. There is no heartbeat: all text is the answer's. */
export const PLAIN_WORDING: Wording = {
  line: [{ slot: 'text' }],
  escapes: 'nothing',
  heartbeat: '',
  heartbeatMs: HEARTBEAT_MS,
}

export const textEncoder: TurnEncoder = {
  encode: (event) => (event.type === 'delta' ? event.text : ''),
  // Text has no other place for an error: without a word, half an answer would be taken for a whole one.
  fail: ({ message }) => `\n\n[The answer broke off: ${message}]`,
}

// =============================================================================
// The end of a UI message stream whose turn failed (contract 3.2).

/** A stopped answer is not shown as a failure. */
const endOf = ({ code, message }: Failure): Record<string, unknown> =>
  code === 'stopped' ? { type: 'abort' } : { type: 'error', errorText: message }
