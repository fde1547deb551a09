/** Sources and thoughts in the shapes of the AI Chat Protocol. Pure. */
import { textOf } from '../../lib/parts'
import type { Assistant } from '../../registry/assistants'
import { callsOf, type Turn } from '../../turn/fold'
import { labelOf } from '../../turn/passage'
import { byteLength } from '../../turn/prompt'
import type { RetrievalMode } from '../http/plan'
import { shownValues } from '../shared/sources'
import type { Dialect } from './dialect'

interface DataPoints {
  /** `<citation>: <text>`, best first */
  text: string[]
  images: never[]
  citations: string[]
}

interface Thought {
  title: string
  description: string | string[]
  props: Record<string, unknown> | null
}

/** The parameters for the shape of an answer. */
export interface Shown {
  assistant: Pick<Assistant, 'citation_field' | 'url_field'>
  /** the mode of each search */
  modes: RetrievalMode[]
  /** names of overrides without effect, and of unknown overrides */
  ignored: string[]
  unknown: string[]
}

/**
 * Limits of a line. A line must stay below 64 KB, and clients read long lines slowly: bytes of JSON for texts and
 * labels, characters for everything else.
 */
const TEXT_BYTES = 24_000
const LABEL_BYTES = 8_000
const LONGEST_QUERY = 200
const MOST_SEARCHES = 10
const MOST_NAMES = 10
const LONGEST_NAME = 60

export function dataPointsOf(
  { passages }: Pick<Turn, 'passages'>,
  { assistant: { citation_field: field, url_field } }: Pick<Shown, 'assistant'>,
): DataPoints {
  const labelling = field === undefined ? {} : { field }
  const hidden = ['id', field, url_field]
  let room = LABEL_BYTES
  const named = passages.flatMap(({ id, fields }) => {
    const label = labelOf({ ...fields, id }, labelling)
    if (label === undefined) return []
    room -= jsonBytes(label)
    return room < 0 ? [] : [{ label, text: documentText(fields, hidden) }]
  })
  const share = Math.floor(TEXT_BYTES / Math.max(1, named.length))
  return {
    text: named.map(({ label, text }) => `${label}: ${shorten(text, share)}`),
    images: [],
    citations: [...new Set(named.map(({ label }) => label))],
  }
}

/** The document's text on one line: contract chat-protocols 1.8 forbids line breaks there. */
export const documentText = (
  document: Record<string, unknown>,
  hidden: readonly (string | undefined)[],
): string => shownValues(document, hidden).join(' ').replace(/\s+/g, ' ').trim()

/** The beginning of a text, up to this many bytes of JSON, not cut within a character. */
function shorten(text: string, bytes: number): string {
  let fitting = text
  for (let size = jsonBytes(fitting); size > bytes; size = jsonBytes(fitting)) {
    fitting = fitting.slice(0, Math.floor((fitting.length * bytes) / size) - 1)
  }
  return fitting.replace(/[\ud800-\udbff]$/, '')
}

const jsonBytes = (text: string): number => byteLength(JSON.stringify(text))

/** How the documents were found. Prompts are left out: they are in the trace, for the admin key. */
export function thoughtsOf(turn: Turn, { modes, ignored, unknown }: Shown): Thought[] {
  const query = clip(turn.standalone ?? textOf(turn.question))
  const searches = turn.summaries.slice(0, MOST_SEARCHES).map((summary, index): Thought => {
    // Searches that the model asked for are those of the assistant, once more.
    const mode = modes[index % modes.length] ?? 'text'
    const ways = {
      retrieval_mode: mode,
      use_text_search: mode !== 'vectors',
      use_vector_search: mode !== 'text',
    }
    const { limit, found, took, error, q } = summary
    const outcome = error
      ? { error: clip(error.message) }
      : { top: limit, found, search_time_ms: took ?? null }
    return {
      title: 'Search using generated search query',
      description: q === undefined ? query : clip(q),
      props: { ...ways, ...outcome, ...(index === 0 && ignored.length > 0 && { ignored }) },
    }
  })
  return [
    {
      title: 'Generated search query',
      description: query,
      props: { original: clip(textOf(turn.question)), rewritten: turn.standalone !== undefined },
    },
    ...searches,
    { title: 'Search results', description: `Documents in the prompt: ${turn.passages.length}`, props: null },
    ...callsOf(turn.answer).map(
      ({ name, title = name, arguments: given, failed, result }): Thought => ({
        title: `Called a tool: ${clip(title)}`,
        description: clip(result ?? 'It needs the leave of the visitor.'),
        props: { name, arguments: clip(given), failed: failed === true },
      }),
    ),
    ...warningsOf(unknown),
  ]
}

const warningsOf = (unknown: string[]): Thought[] =>
  unknown.length === 0
    ? []
    : [
        {
          title: 'Warnings',
          description: unknown
            .slice(0, MOST_NAMES)
            .map((name) => `Unknown override: ${name.slice(0, LONGEST_NAME)}`),
          props: null,
        },
      ]

/** The answer's usage, once it is known. */
export const answerThought = ({ usage, timings }: Turn): Thought[] =>
  usage
    ? [
        {
          title: 'Prompt to generate answer',
          description: 'The prompt is in the trace of the conversation, for the admin key.',
          props: {
            model: usage.model,
            token_usage: {
              prompt_tokens: usage.input_tokens ?? 0,
              completion_tokens: usage.output_tokens ?? 0,
              total_tokens: (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0),
            },
            timings: timings ?? {},
          },
        },
      ]
    : []

const clip = (text: string): string =>
  text.length <= LONGEST_QUERY ? text : `${text.slice(0, LONGEST_QUERY).replace(/[\ud800-\udbff]$/, '')}…`

// =============================================================================
// The JSON of each dialect of the AI Chat Protocol (contract chat-protocols 1.1, 1.5 and 1.6). Pure.

/** What comes with the text of an answer. */
export interface Context {
  data_points?: DataPoints
  thoughts: Thought[]
  /** null: none were asked for */
  followup_questions?: string[] | null
  /** for clients that keep their session there */
  sessionId?: string
}

export interface Words {
  /** of the lines of a stream */
  mediaType: string
  /** the whole answer */
  whole(content: string, context: Context, session: string, finishReason: string): unknown
  /** the first line: what was found. It has no text, because clients drop text from it */
  open(context: Context, session: string): unknown
  piece(text: string): unknown
  /** the last line. It has no text and no `data_points`: clients would replace those that they have */
  close(context: Context, session: string, finishReason: string): unknown
  /** whether suggestions are in the answer's text, as `<<Question?>>` */
  inlineSuggestions?: boolean
}

type Keys = (session: string) => Record<string, string>

const snake: Keys = (session) => ({ session_state: session })
const camel: Keys = (session) => ({ sessionState: session })
const both: Keys = (session) => ({ ...snake(session), ...camel(session) })

/** 2024-05-29 and the versions that followed from it. */
const plain = (mediaType: string, keys: Keys): Words => ({
  mediaType,
  whole: (content, context, session) => ({
    message: { role: 'assistant', content },
    // From the newest dialect, so that its clients can read this answer. Clients of this dialect ignore it.
    output_text: content,
    context,
    ...keys(session),
  }),
  open: (context, session) => ({ delta: { role: 'assistant' }, context, ...keys(session) }),
  piece: (text) => ({ delta: { content: text } }),
  close: (context, session) => ({ delta: {}, context, ...keys(session) }),
})

const envelope: Words = {
  mediaType: 'application/json-lines',
  whole: (content, context, session, finishReason) => ({
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content },
        context,
        ...snake(session),
        finish_reason: finishReason,
      },
    ],
  }),
  open: (context, session) =>
    chunk({ delta: { role: 'assistant' }, context, ...snake(session), finish_reason: null }),
  piece: (text) => chunk({ delta: { content: text }, finish_reason: null }),
  close: (context, session, finishReason) =>
    chunk({ delta: {}, context, ...snake(session), finish_reason: finishReason }),
}

const chunk = (choice: Record<string, unknown>) => ({
  object: 'chat.completion.chunk',
  choices: [{ index: 0, ...choice }],
})

const newest: Words = {
  mediaType: 'application/json-lines',
  whole: (content, context, session) => ({ output_text: content, context, ...snake(session) }),
  open: (context, session) => ({ type: 'response.context', context, ...snake(session) }),
  piece: (text) => ({ type: 'response.output_text.delta', delta: text }),
  close: (context, session) => ({ type: 'response.context', context, ...snake(session) }),
}

const component: Words = {
  mediaType: 'application/x-ndjson',
  inlineSuggestions: true,
  whole: (content, context, session, finishReason) => ({
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content, context: asComponent(context), ...snake(session) },
        finish_reason: finishReason,
      },
    ],
  }),
  open: (context, session) =>
    chunk({
      delta: { role: 'assistant', content: '', context: asComponent(context), ...snake(session) },
      finish_reason: null,
    }),
  piece: (text) => chunk({ delta: { role: 'assistant', content: text, context: {} }, finish_reason: null }),
  close: (_, session, finishReason) =>
    chunk({
      delta: { role: 'assistant', content: '', context: {}, ...snake(session) },
      finish_reason: finishReason,
    }),
}

/** The component reads a list of texts, and thoughts as HTML. */
const asComponent = ({ data_points: points, thoughts }: Context) => ({
  data_points: points?.text ?? [],
  thoughts: thoughts.map(({ title, description }) => escapeHtml(`${title}: ${description}`)).join('<br>'),
})

const ESCAPES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (character) => ESCAPES[character]!)

export const WORDS: Record<Dialect, Words> = {
  '2024-01-28': envelope,
  '2024-05-29': plain('application/json-lines', snake),
  '2024-08': plain('application/jsonl', camel),
  '2026-04': newest,
  'azure-js': component,
  unnamed: plain('application/jsonl', both),
}
