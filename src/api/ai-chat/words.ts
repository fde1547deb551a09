/** The JSON of each dialect of the AI Chat Protocol (contract chat-protocols 1.1, 1.5 and 1.6). Pure. */
import type { DataPoints, Thought } from './context'
import type { Dialect } from './dialect'

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
