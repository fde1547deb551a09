/**
 * Writes a turn as OpenAI's chat completions (contract 3.3): pure functions from events to JSON and to the bytes of the
 * stream.
 *
 * Sources are in the same places as on other servers: those with an address are in `annotations`, with their
 * positions in the answer; all are in a `context` with their texts, as in Azure's answers over one's own data. In a
 * stream both are in the last delta.
 */

import { type ToolCallPart, textOf } from '../../lib/parts'
import { type Usage, type Wording, writeDelta } from '../../turn/events'
import { emptyTurn, type Turn } from '../../turn/fold'
import { waitingIn } from '../../turn/tools'
import { type AnswerSource, type SourceFields, sourceId, sourcesOf } from '../shared/sources'
import { eventWording, frame, type TurnEncoder, turnEncoder } from '../shared/stream'
import { errorBody } from './errors'

export interface CompletionShape {
  /** as the request named it */
  model: string
  /** unix seconds */
  created: number
  fields: SourceFields
  /** true: the turn belongs to no conversation */
  unstored?: boolean | undefined
  /** names of parameters that were passed over */
  ignored?: string[] | undefined
}

const DONE = 'data: [DONE]\n\n'

/** How a piece of an answer is written. @param shape of the encoder */
export function chunkWording(
  shape: Pick<CompletionShape, 'model' | 'created'>,
  includeUsage: boolean,
): Wording {
  const { id: _, ...head } = { ...headOf(emptyTurn(), shape, 'chat.completion.chunk'), choices: [] }
  return eventWording([
    'data: {"id":"chatcmpl-',
    { slot: 'conversation' },
    '.',
    { slot: 'turn' },
    `",${JSON.stringify(head).slice(1, -2)}{"index":0,"delta":{"content":"`,
    { slot: 'text' },
    `"},"finish_reason":null}]${includeUsage ? ',"usage":null' : ''}}\n\n`,
  ])
}

export const completionEncoder = (shape: CompletionShape, includeUsage: boolean): TurnEncoder => {
  const words = chunkWording(shape, includeUsage)
  return turnEncoder((turn) => {
    const write = (choices: object[], usage: object | null): string => {
      const head = headOf(turn, shape, 'chat.completion.chunk')
      return frame({ ...head, choices, ...(includeUsage && { usage }) })
    }
    const chunk = (delta: object, finish: string | null = null): string =>
      write([{ index: 0, delta, finish_reason: finish }], null)
    return {
      question: () => chunk({ role: 'assistant', content: '' }),
      delta: (event) => writeDelta(words, event),
      part: ({ part }) => {
        if (part.type !== 'tool_call' || part.awaits !== 'page') return ''
        const index = waitingIn(turn.answer).length - 1
        return chunk({ tool_calls: [{ index, ...toolCall(part) }] })
      },
      done: (event) =>
        chunk(extrasOf(turn, shape), finishReason(event.finish_reason)) +
        (includeUsage ? write([], usageOf(turn.usage)) : '') +
        DONE,
      // No end marker follows, because the text before is not a complete answer.
      fail: (failure) => frame(errorBody(failure)),
    }
  })
}

/** The whole answer. @param turn one that is done */
export const completion = (turn: Turn, shape: CompletionShape) => ({
  ...headOf(turn, shape, 'chat.completion'),
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: textOf(turn.answer),
        refusal: null,
        ...(waitingIn(turn.answer).length > 0 && { tool_calls: waitingIn(turn.answer).map(toolCall) }),
        ...extrasOf(turn, shape),
      },
      logprobs: null,
      finish_reason: finishReason(turn.finishReason),
    },
  ],
  usage: usageOf(turn.usage),
})

/** A call that waits for the caller, who runs it. Calls of the assistant's own tools are not shown: they have run. */
const toolCall = ({ id, name, arguments: given }: ToolCallPart) => ({
  id,
  type: 'function',
  function: { name, arguments: given },
})

const headOf = (
  { conversationId, turn }: Turn,
  { model, created }: Pick<CompletionShape, 'model' | 'created'>,
  object: string,
) => ({
  id: `chatcmpl-${conversationId}.${turn}`,
  object,
  created,
  model,
})

function extrasOf(turn: Turn, { fields, unstored, ignored }: CompletionShape) {
  const sources = sourcesOf(turn.passages, fields)
  const { suggestions, conversationId } = turn
  return {
    annotations: citedPlaces(turn, sources).map((place) => ({ type: 'url_citation', url_citation: place })),
    context: {
      ...(!unstored && { conversation_id: conversationId }),
      citations: sources.map(({ id, title, url, text, documentId }) => ({
        content: text,
        title,
        url: url ?? null,
        filepath: documentId,
        chunk_id: id,
      })),
      ...(suggestions && { followup_questions: suggestions }),
      ...(ignored && { ignored }),
    },
  }
}

/** The cited places of the answer, with those of their sources that have an address. */
export function citedPlaces({ citations }: Turn, sources: readonly AnswerSource[]) {
  const named = new Map(sources.map((source) => [source.id, source]))
  return citations.flatMap(({ collection, document_id, start, end }) => {
    const { title, url } = named.get(sourceId(collection, document_id)) ?? {}
    return url === undefined ? [] : [{ start_index: start, end_index: end, title, url }]
  })
}

const FINISH_REASONS = ['stop', 'length', 'content_filter', 'tool_calls']

/** Clients know only these reasons. */
export const finishReason = (reason = 'stop'): string => (FINISH_REASONS.includes(reason) ? reason : 'stop')

export const usageOf = ({ input_tokens: input = 0, output_tokens: output = 0 }: Partial<Usage> = {}) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
})
