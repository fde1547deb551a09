/** What an answer stands on, and how it was found, in the shapes of the AI Chat Protocol: pure. */

import type { Turn } from '../../turn/fold'
import { labelOf } from '../../turn/labels'
import { byteLength } from '../../turn/serialise'
import type { RetrievalMode } from '../assistants/plan'
import { documentsIn, sourceId } from '../turn/sources'

export interface DataPoints {
  /** `<citation>: <text>`, best first */
  text: string[]
  images: never[]
  citations: string[]
}

export interface Thought {
  title: string
  description: string | string[]
  props: Record<string, unknown> | null
}

/** What of the assistant and of the request decides how its answer is shown. */
export interface Shown {
  citationField?: string
  urlField?: string
  /** how each search finds */
  modes: RetrievalMode[]
  /** names of overrides without effect, and of unknown ones */
  ignored: string[]
  unknown: string[]
}

/**
 * Bytes of JSON that texts and labels may take, and characters of all else: a line has to stay below 64 KB, and
 * clients read long ones slowly.
 */
const TEXT_BYTES = 24_000
const LABEL_BYTES = 8_000
const LONGEST_QUERY = 200
const MOST_SEARCHES = 10
const MOST_NAMES = 10
const LONGEST_NAME = 60

export function dataPointsOf(
  { replies, sources }: Pick<Turn, 'replies' | 'sources'>,
  { citationField, urlField }: Pick<Shown, 'citationField' | 'urlField'>,
): DataPoints {
  const labelling = citationField === undefined ? {} : { field: citationField }
  const hidden = ['id', citationField, urlField]
  let room = LABEL_BYTES
  const found = documentsIn(replies)
  const named = sources.flatMap(({ collection, document_id: id }) => {
    const document = found.get(sourceId(collection, id))
    const label = document && labelOf(document, labelling)
    if (document === undefined || label === undefined) return []
    room -= jsonBytes(label)
    return room < 0 ? [] : [{ label, text: textOf(document, hidden) }]
  })
  const share = Math.floor(TEXT_BYTES / Math.max(1, named.length))
  return {
    text: named.map(({ label, text }) => `${label}: ${shorten(text, share)}`),
    images: [],
    citations: [...new Set(named.map(({ label }) => label))],
  }
}

/** What a document says on one line: contract chat-protocols 1.8 wants no line breaks there. */
export const textOf = (document: Record<string, unknown>, hidden: readonly (string | undefined)[]): string =>
  textsOf(document, hidden).join(' ').replace(/\s+/g, ' ').trim()

/**
 * What a document says: its texts as they are, other values by their names. Lists of numbers are vectors, which say
 * nothing to a reader.
 */
export function textsOf(
  document: Record<string, unknown>,
  hidden: readonly (string | undefined)[],
): string[] {
  const said = (value: unknown, name: string): string[] => {
    if (typeof value === 'string') return [value]
    if (isNumeric(value) || typeof value === 'boolean') return [`${name}: ${value}`]
    if (Array.isArray(value)) return isNumeric(value[0]) ? [] : value.flatMap((item) => said(item, name))
    if (value === null || typeof value !== 'object') return []
    return Object.entries(value).flatMap(([key, item]) => said(item, key))
  }
  return Object.entries(document).flatMap(([name, value]) => (hidden.includes(name) ? [] : said(value, name)))
}

const isNumeric = (value: unknown): value is number | bigint =>
  typeof value === 'number' || typeof value === 'bigint'

/** The beginning of a text that takes so many bytes as JSON, without half a character at its end. */
function shorten(text: string, bytes: number): string {
  let fitting = text
  for (let size = jsonBytes(fitting); size > bytes; size = jsonBytes(fitting)) {
    fitting = fitting.slice(0, Math.floor((fitting.length * bytes) / size) - 1)
  }
  return fitting.replace(/[\ud800-\udbff]$/, '')
}

const jsonBytes = (text: string): number => byteLength(JSON.stringify(text))

/** How the documents were found. Prompts stay out: they are on the trace, which is for the admin key. */
export function thoughtsOf(turn: Turn, { modes, ignored, unknown }: Shown): Thought[] {
  const query = clip(turn.standalone ?? turn.question)
  const searches = turn.replies.slice(0, MOST_SEARCHES).map((reply, index): Thought => {
    const mode = modes[index] ?? 'text'
    const ways = {
      retrieval_mode: mode,
      use_text_search: mode !== 'vectors',
      use_vector_search: mode !== 'text',
    }
    const outcome =
      'result' in reply
        ? {
            top: reply.result.request_params.per_page,
            found: reply.result.found,
            search_time_ms: reply.result.search_time_ms ?? null,
          }
        : { error: clip(reply.error) }
    return {
      title: 'Search using generated search query',
      description: query,
      props: { ...ways, ...outcome, ...(index === 0 && ignored.length > 0 && { ignored }) },
    }
  })
  return [
    {
      title: 'Generated search query',
      description: query,
      props: { original: clip(turn.question), rewritten: turn.standalone !== undefined },
    },
    ...searches,
    { title: 'Search results', description: `Documents in the prompt: ${turn.sources.length}`, props: null },
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

/** What the answer took, once that is known. */
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
