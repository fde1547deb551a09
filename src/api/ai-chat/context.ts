/** Sources and thoughts in the shapes of the AI Chat Protocol. Pure. */

import { textOf } from '../../lib/parts'
import type { Assistant } from '../../registry/assistants'
import type { Turn } from '../../turn/fold'
import { labelOf } from '../../turn/passage'
import { byteLength } from '../../turn/prompt'
import type { RetrievalMode } from '../http/retrieval'
import { textsOf } from '../shared/documents'

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
): string => textsOf(document, hidden).join(' ').replace(/\s+/g, ' ').trim()

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
