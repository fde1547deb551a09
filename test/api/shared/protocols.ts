import { expect } from 'vitest'
import { endedTask, taskEncoder } from '../../../src/api/a2a/encoder'
import { agUiEncoder } from '../../../src/api/agui/encoder'
import { encodeAnswer, lineEncoder, type Writing } from '../../../src/api/ai-chat/encoder'
import { WORDS } from '../../../src/api/ai-chat/words'
import { snippetEncoder } from '../../../src/api/ai-search'
import { deepChatEncoder, messageOf as deepChatMessage } from '../../../src/api/deep-chat'
import { askEncoder, answerOf as toolResult } from '../../../src/api/mcp/tools'
import { linesEncoder } from '../../../src/api/n8n'
import { completion, completionEncoder } from '../../../src/api/openai/encoder'
import { responseEncoder, responseOf } from '../../../src/api/openai/responses'
import { answerEncoder, extOf } from '../../../src/api/opensearch/rag'
import { answerOf, logEncoder } from '../../../src/api/parley/encoder'
import { linkedAnswer, sourcesOf } from '../../../src/api/shared/sources'
import type { TurnEncoder } from '../../../src/api/shared/stream'
import { type AnswerShape, messageEncoder, responseBody } from '../../../src/api/typesense/encoder'
import { uiStreamEncoder } from '../../../src/api/ui-stream/encoder'
import type { Failure } from '../../../src/errors'
import { textOf } from '../../../src/lib/parts'
import type { TurnEvent } from '../../../src/turn/events'
import { emptyTurn, fold, type Turn } from '../../../src/turn/fold'

/** A protocol that nobody speaks: lines of text. */
export class PlainTextEncoder implements TurnEncoder {
  readonly #turn = emptyTurn()

  encode(event: TurnEvent): string {
    fold(this.#turn, event)
    if (event.type === 'delta') return JSON.stringify(event.text).slice(1, -1)
    if (event.type !== 'done') return ''
    const { passages, finishReason } = this.#turn
    return `\nsources: ${passages.length}\nend: ${finishReason}\n`
  }

  fail({ message }: { message: string }): string {
    return `\nerror: ${message}\n`
  }
}

const json = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

const MODEL = { model: 'm', created: 0, fields: {} }
const SHAPE: AnswerShape = { conversationId: 'c', question: 'q', shape: 'multi', ttl: 60, withHistory: false }
const WRITING: Writing = {
  words: WORDS.unnamed,
  errorForm: 'text',
  inlineSuggestions: false,
  contextSession: false,
  assistant: {},
  modes: ['hybrid'],
  ignored: [],
  unknown: [],
}

const dataOf = (stream: string): { data: string }[] =>
  [...stream.matchAll(/^data: (.*)$/gm)].map(([, data]) => ({ data: data! }))
export const jsonOf = (stream: string) =>
  dataOf(stream).flatMap(({ data }) => (data === '[DONE]' ? [] : [JSON.parse(data)]))

const linesOf = (stream: string) =>
  stream
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

/** What a protocol's stream says, and what its answer in one piece says: the text, and what stands beside it. */
interface Protocol {
  /** @param turn what all of its events will add up to, for protocols whose caller searched before the turn */
  encoder(turn: Turn): { encode(event: TurnEvent): string; fail?(failure: Failure): string }
  streamed(stream: string): Said
  whole(turn: Turn): Said
  /** the answer in the protocol's words, where it is not the turn's text as it is */
  says?(turn: Turn): string
  /** what the last event says if the turn failed; by default it holds the error's message */
  failed?(stream: string): unknown
}

interface Said {
  text: string
  beside: unknown
}

const textIn = (pieces: { text?: string }[]): string => pieces.map(({ text = '' }) => text).join('')
const shortSources = ({ passages }: Turn) =>
  sourcesOf(passages).map(({ id, title, url }) => ({ id, title, ...(url && { url }) }))
const TOOLS = { id: 7, token: 'progress' }

/** The fields of a search's hits in a turn that OpenSearch answers: its citations name only these. */
const hitsOf = ({ citations }: Turn) => ({
  passages: citations.map(({ collection, document_id: documentId }) => ({
    collection,
    documentId,
    field: 'text',
    text: '',
  })),
  memory: true,
})
const searchOf = (turn: Turn) => ({
  found: { hits: {} },
  hasMemory: true,
  ignoresFailure: false,
  whole: (done: Turn) => ({ hits: {}, ext: extOf(done, hitsOf(turn)) }),
  failed: ({ message }: Failure) => ({ error: message }),
})

export const protocols: Record<string, Protocol> = {
  typesense: {
    encoder: () => messageEncoder(SHAPE),
    streamed: (stream) => {
      const all = jsonOf(stream)
      const { conversation_id, message, ...body } = all.at(-1)
      return {
        text: all
          .slice(0, -1)
          .map((each) => each.message)
          .join(''),
        beside: body,
      }
    },
    whole: (turn) => ({ text: textOf(turn.answer), beside: responseBody(turn, SHAPE) }),
  },
  parley: {
    encoder: () => logEncoder(),
    streamed: (stream) => {
      const types = [...stream.matchAll(/^event: (.*)$/gm)].map(([, type]) => type)
      const of = (type: string) => jsonOf(stream).filter((_, index) => types[index] === type)
      return {
        text: of('delta')
          .map(({ text }) => text)
          .join(''),
        beside: [of('citation'), of('retrieval').flatMap(({ replies }) => replies).length],
      }
    },
    whole: (turn) => {
      const { answer, citations, results } = answerOf(turn)
      return { text: answer, beside: [citations, results.length] }
    },
  },
  'chat completions': {
    encoder: () => completionEncoder(MODEL, false),
    streamed: (stream) => {
      const deltas = jsonOf(stream).map(({ choices }) => choices[0].delta)
      const { annotations, context } = deltas.at(-1)
      return { text: deltas.map(({ content = '' }) => content).join(''), beside: { annotations, context } }
    },
    whole: (turn) => {
      const { content, annotations, context } = completion(turn, MODEL).choices[0]!.message
      return { text: content, beside: { annotations, context } }
    },
  },
  responses: {
    encoder: () => responseEncoder({ ...MODEL, previous: null, handle: 'c' }),
    streamed: (stream) => {
      const all = jsonOf(stream)
      const deltas = all.filter(({ type }) => type === 'response.output_text.delta')
      return { text: deltas.map(({ delta }) => delta).join(''), beside: all.at(-1).response }
    },
    whole: (turn) => {
      const response = responseOf(turn, { ...MODEL, previous: null, handle: 'c' })
      return { text: response.output[0].content[0]!.text, beside: response }
    },
  },
  'ui stream': {
    encoder: () => uiStreamEncoder({ fields: {}, citations: 'parts' }),
    streamed: (stream) => {
      const all = jsonOf(stream)
      const deltas = all.filter(({ type }) => type === 'text-delta')
      const sources = all.filter(({ type }) => type.startsWith('source-'))
      return {
        text: deltas.map(({ delta }) => delta).join(''),
        beside: [sources.map(({ sourceId }) => sourceId), all.at(-1).messageMetadata.usage],
      }
    },
    whole: ({ answer, passages, usage }) => ({
      text: textOf(answer),
      beside: [sourcesOf(passages).map(({ id }) => id), usage],
    }),
  },
  'ai chat': {
    failed: (stream) => linesOf(stream).at(-1),
    encoder: () => lineEncoder(WRITING),
    streamed: (stream) => {
      const all = linesOf(stream)
      return {
        text: all.map(({ delta }) => delta?.content ?? '').join(''),
        beside: all.at(-1).context.thoughts,
      }
    },
    whole: (turn) => {
      const { message, context } = encodeAnswer(turn, WRITING) as never as {
        message: { content: string }
        context: { thoughts: unknown }
      }
      return { text: message.content, beside: context.thoughts }
    },
  },
  'ui stream with links': {
    encoder: () => uiStreamEncoder({ fields: {}, citations: 'markdown' }),
    streamed: (stream) => {
      const all = jsonOf(stream)
      const suggestions = all.filter(({ type }) => type === 'data-suggestions').at(-1)
      return {
        text: all.map(({ type, delta }) => (type === 'text-delta' ? delta : '')).join(''),
        beside: suggestions?.data.suggestions,
      }
    },
    whole: (turn) => ({ text: linkedAnswer(turn, {}), beside: turn.suggestions }),
    says: (turn) => linkedAnswer(turn, {}),
  },
  a2a: {
    encoder: () => taskEncoder(7, {}, 'c'),
    streamed: (stream) => {
      const all = jsonOf(stream).map(({ result }) => result)
      const updates = all.flatMap(({ artifactUpdate }) => artifactUpdate ?? [])
      const { metadata } = updates.at(-1).artifact
      const { taskId, contextId, status } = all.at(-1).statusUpdate
      return {
        text: textIn(updates.flatMap(({ artifact }) => artifact.parts)),
        beside: { metadata, taskId, contextId, status },
      }
    },
    whole: (turn) => {
      const { id, contextId, status, artifacts } = json(endedTask(turn, {}, 'c')) as {
        id: string
        contextId: string
        status: unknown
        artifacts: { parts: { text: string }[]; metadata: unknown }[]
      }
      const [{ parts, metadata }] = artifacts as [(typeof artifacts)[0]]
      return { text: textIn(parts), beside: { metadata, taskId: id, contextId, status } }
    },
  },
  'ag-ui': {
    encoder: () => agUiEncoder({ thread: 'chat', run: 'run', ignored: [] }, {}),
    streamed: (stream) => {
      const all = jsonOf(stream)
      const custom = (wanted: string) =>
        all.flatMap(({ type, name, value }) => (type === 'CUSTOM' && name === wanted ? [value] : []))
      const { outcome, result } = all.at(-1)
      return {
        text: all.map(({ type, delta }) => (type === 'TEXT_MESSAGE_CONTENT' ? delta : '')).join(''),
        beside: { sources: custom('sources').flat(), followups: custom('followups').at(-1), outcome, result },
      }
    },
    whole: ({ answer, passages, suggestions: followups, conversationId, turn, citations }) => ({
      text: textOf(answer),
      beside: {
        sources: sourcesOf(passages).map(({ id, title, url, text }) => ({ id, title, url, text })),
        followups,
        outcome: { type: 'success' },
        result: { conversation_id: conversationId, turn, citations },
      },
    }),
  },
  'deep-chat': {
    encoder: () => deepChatEncoder({}),
    streamed: (stream) => {
      const all = jsonOf(stream)
      return { text: textIn(all.slice(0, -1)), beside: all.at(-1) }
    },
    whole: (turn) => {
      const { text, ...beside } = deepChatMessage(turn, {})
      expect(beside.sources).toEqual(shortSources(turn))
      return { text, beside }
    },
    says: (turn) => linkedAnswer(turn, {}),
  },
  n8n: {
    encoder: () => linesEncoder({}),
    streamed: (stream) => {
      const all = linesOf(stream)
      expect([all[0].type, all.at(-1).type]).toEqual(['begin', 'end'])
      return { text: all.map(({ content = '' }) => content).join(''), beside: undefined }
    },
    whole: (turn) => ({ text: linkedAnswer(turn, {}), beside: undefined }),
    says: (turn) => linkedAnswer(turn, {}),
    failed: (stream) => linesOf(stream).at(-1),
  },
  mcp: {
    encoder: () => askEncoder(TOOLS.id, {}, TOOLS.token),
    streamed: (stream) => {
      const all = jsonOf(stream)
      const progress = all.slice(0, -1).map(({ params }) => params)
      expect(progress.map((each) => each.progressToken)).toEqual(progress.map(() => TOOLS.token))
      const { result } = all.at(-1)
      return { text: result.structuredContent.answer, beside: result }
    },
    whole: (turn) => {
      const result = toolResult(turn, {})
      const { sources, followups } = result.structuredContent as {
        sources: { cited: boolean }[]
        followups: unknown
      }
      expect(sources.map(({ cited: _, ...source }) => source)).toEqual(shortSources(turn))
      expect(followups).toEqual(turn.suggestions)
      return { text: textOf(turn.answer), beside: result }
    },
  },
  'ai search': {
    encoder: () => snippetEncoder({}),
    streamed: (stream) => {
      const all = jsonOf(stream)
      return {
        text: all.map(({ choices }) => choices?.[0].delta.content ?? '').join(''),
        beside: all.flatMap((each) => (Array.isArray(each) ? each : [])).map(({ id }) => id),
      }
    },
    whole: ({ answer, passages }) => ({
      text: textOf(answer),
      beside: sourcesOf(passages).map(({ id }) => id),
    }),
  },
  opensearch: {
    encoder: (turn) => answerEncoder(searchOf(turn)),
    streamed: (stream) => {
      const types = [...stream.matchAll(/^event: (.*)$/gm)].map(([, type]) => type)
      expect([types[0], types.at(-1)]).toEqual(['hits', 'done'])
      const all = jsonOf(stream)
      return { text: textIn(all.filter((_, at) => types[at] === 'answer')), beside: all.at(-1) }
    },
    whole: (turn) => {
      const whole = searchOf(turn).whole(turn)
      const { answer, usage, citations } = whole.ext
      expect({ answer, usage }).toEqual({ answer: textOf(turn.answer), usage: turn.usage })
      expect((citations as { _id: string }[]).map(({ _id }) => _id)).toEqual(
        turn.citations.map(({ document_id }) => document_id),
      )
      return { text: textOf(turn.answer), beside: whole }
    },
  },
  'plain text': {
    encoder: () => new PlainTextEncoder(),
    streamed: (stream) => {
      const [text, sources] = stream.split('\n')
      return { text: JSON.parse(`"${text}"`), beside: sources }
    },
    whole: ({ answer, passages }) => ({ text: textOf(answer), beside: `sources: ${passages.length}` }),
    failed: (stream) => stream.trimEnd().split('\n').at(-1),
  },
}
