/**
 * Cloudflare's AI Search snippet (contract 3.5). It sends no headers of its own, so the key is in its configured
 * address: `api-url="https://parley.example/ai-search/KEY/ASSISTANT"`.
 */
import * as v from 'valibot'
import { type Access, ASK_ACTIONS } from '../../auth/access'
import { admit } from '../../auth/authenticate'
import { ApiError } from '../../errors'
import { once } from '../../lib/once'
import { textOf } from '../../lib/parts'
import { isObject } from '../../search/schema/values'
import { readJson, shaped } from '../http/body'
import { openParties } from '../http/chat-names'
import { type App, ASKS, type OpenCall, openRoute, register } from '../http/router'
import { askChat, openQuestion } from '../shared/assistant'
import { questionIn, transcriptIn } from '../shared/foreign'
import { type SourceFields, searchDocuments, sourcesOf } from '../shared/sources'
import { frame, streamAnswer, type TurnEncoder, turnEncoder, wholeAnswer } from '../shared/stream'

const MOST_RESULTS = 50
const USUAL_RESULTS = 10
/** Characters of a result's text below its title. */
const DESCRIPTION = 200

const Body = once(() =>
  v.looseObject({
    /** instead of `messages`: what the service itself takes */
    query: v.optional(v.string()),
    messages: v.pipe(
      v.array(v.looseObject({ role: v.string(), content: v.optional(v.unknown()) })),
      v.check((messages) => messages.at(-1)?.role === 'user', 'Expected a message of a `user` at the end.'),
    ),
    stream: v.optional(v.boolean()),
    // The assistant, not the page, decides the models and the prompts for rewriting questions.
    ai_search_options: v.fallback(
      v.object({ retrieval: v.object({ max_num_results: v.pipe(v.number(), v.integer(), v.minValue(1)) }) }),
      { retrieval: { max_num_results: USUAL_RESULTS } },
    ),
  }),
)

const withMessages = (body: unknown): unknown =>
  isObject(body) && typeof body.query === 'string' && body.messages === undefined
    ? { ...body, messages: [{ role: 'user', content: body.query }] }
    : body

function read(body: unknown) {
  const { messages, stream, ai_search_options: options } = shaped(Body(), withMessages(body))
  return {
    question: questionIn(messages.at(-1)!),
    transcript: transcriptIn(messages.slice(0, -1)),
    stream,
    limit: Math.min(MOST_RESULTS, options.retrieval.max_num_results),
  }
}

/** @throws ApiError 401 for a key that is not made for pages: addresses end up in logs and histories */
async function admitPageKey({ env, path, record, prefetch }: OpenCall): Promise<Access> {
  const access = await admit(env, path.key, ASK_ACTIONS, undefined, record, prefetch)
  if (access.forPages) return access
  throw new ApiError(
    401,
    'The key in the address must be made for pages: a scoped key, or one with `limits`.',
  )
}

async function chat(call: OpenCall): Promise<Response> {
  const { parties, bodyText, body } = await openQuestion(call, 'ai-search', undefined, () =>
    admitPageKey(call),
  )
  const { question, transcript, stream } = read(body)
  const answering = await askChat(parties, {
    question,
    transcript,
    protocol: 'ai-search',
    bodyText,
  })
  if (stream !== false) {
    return streamAnswer(answering, snippetEncoder(parties.assistant), { opensAt: 'text' })
  }
  return wholeAnswer(answering, ({ answer }) => ({
    choices: [{ index: 0, message: { role: 'assistant', content: textOf(answer) } }],
  }))
}

async function search(call: OpenCall): Promise<object> {
  const parties = await openParties(call, { admit: () => admitPageKey(call) })
  const { question, limit } = read(await readJson(call.request))
  const { query, found } = await searchDocuments({ ...parties, record: call.record }, question, limit)
  return {
    success: true,
    result: {
      search_query: query,
      chunks: found.map(({ id, title, url = '', text, score }) => ({
        id,
        score,
        text,
        item: { key: url, metadata: { title, description: text.slice(0, DESCRIPTION) } },
      })),
    },
  }
}

const BASE = '/ai-search/:key/:assistant'

/** The path without the key, for error messages. */
export const withoutKey = (path: string): string => path.replace(/^\/ai-search\/[^/]+/, '/ai-search/KEY')

export const mountAiSearch = (app: App): void =>
  register(app, [
    openRoute('POST', `${BASE}/chat/completions`, chat, ASKS),
    openRoute('POST', `${BASE}/search`, search),
  ])

// =============================================================================
// Writes a turn in the snippet's format: chat completion chunks, with the sources in an event of their own.

const DONE = 'data: [DONE]\n\n'

export const snippetEncoder = (fields: SourceFields): TurnEncoder =>
  turnEncoder((turn) => ({
    retrieval: (_, known) => {
      const chunks = sourcesOf(turn.passages.slice(known), fields).map(({ id, title, url = '', text }) => ({
        id,
        text,
        item: { key: url, metadata: { title } },
      }))
      return `event: chunks\n${frame(chunks)}`
    },
    delta: ({ text }) => chunk(text),
    done: () => DONE,
    // The snippet treats any end of a stream as a success, and shows no errors from it. So the message goes into the text.
    fail: ({ message }) => chunk(`\n\n**${message}**`) + DONE,
  }))

const chunk = (content: string): string =>
  frame({ object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content } }] })
