/** Collections, models and turns for tests inside workerd. */

import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, vi } from 'vitest'
import { type Answering, ask as askConversation, type Question } from '../../src/conversation/ask'
import { sealedId } from '../../src/conversation/conversation-id'
import { conversationObject } from '../../src/conversation/conversation-object'
import { ADMIN } from '../../src/conversation/stored'
import { unwrap } from '../../src/errors'
import { contentOf } from '../../src/lib/parts'
import { createCollection, findCollection } from '../../src/registry/collections'
import { createModel, findModel } from '../../src/registry/models'
import type { CollectionRpc } from '../../src/search/collection/handle'
import * as handle from '../../src/search/collection/handle'
import type { Position, TurnEvent } from '../../src/turn/events'
import type { AskRequest } from '../../src/turn/request'
import { historySchema } from '../history-schema'
import { config } from '../models/ask'

export async function collectionNamed(name: string): Promise<{ objectId: string; object: CollectionRpc }> {
  const { objectId } = await findCollection(env, name)
  return { objectId, object: handle.collectionObject(env, objectId) }
}

const FILMS = [
  {
    id: 'alien',
    title: 'Alien',
    text: 'Alien is a 1979 horror film directed by Ridley Scott. The crew of a space tug meets a deadly creature.',
  },
  {
    id: 'heat',
    title: 'Heat',
    text: 'Heat is a 1995 crime film by Michael Mann. It follows a detective and a thief in Los Angeles.',
  },
]

/** A model of a provider out there, whose fetch the test stands in for. */
export const openai = config({
  model_name: 'openai/gpt',
  api_key: 'sk-secret',
  openai_url: 'https://llm.test',
  history_collection: 'talk',
})

/** The collections `films` and `talk`, and the model `m`. */
export async function setStage(model: Record<string, unknown> = {}): Promise<void> {
  await createCollection(env, {
    name: 'films',
    fields: [
      { name: 'title', type: 'string' },
      { name: 'text', type: 'string' },
    ],
  })
  const { object } = await collectionNamed('films')
  for (const film of FILMS) unwrap(await object.write(JSON.stringify(film), { action: 'create' }))
  await createCollection(env, historySchema('talk'))
  await createModel(env, {
    id: 'm',
    model_name: 'local/extractive',
    history_collection: 'talk',
    max_bytes: 16_384,
    ...model,
  })
}

export async function asking(question: string, parts: Partial<AskRequest> = {}): Promise<AskRequest> {
  const model = (await findModel(env, 'm'))!
  return {
    conversationId: await sealedId(env),
    continues: false,
    question: contentOf(question),
    model,
    historyId: (await collectionNamed('talk')).objectId,
    searches: [
      {
        collection: 'films',
        place: { engine: 'object', objectId: (await collectionNamed('films')).objectId },
        params: { query_by: 'title,text' },
      },
    ],
    onSearchError: 'fail',
    asker: { owner: 'admin', userId: '' },
    protocol: 'typesense',
    ...parts,
  }
}

export const conversation = (id: string) => conversationObject(env, id)

export async function read(stream: ReadableStream<Uint8Array>): Promise<TurnEvent[]> {
  const text = await new Response(stream).text()
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

/** Takes a turn in the conversation that the request names. */
export async function begin(request: AskRequest): Promise<ReadableStream<Uint8Array>> {
  const asked = unwrap(await conversation(request.conversationId).ask(request))
  if ('elsewhere' in asked) throw new Error('the turn belongs elsewhere')
  return asked.events
}

/** A question whose conversation is new, for the way that every protocol takes. */
export async function newQuestion(question: string, parts: Partial<AskRequest> = {}): Promise<Question> {
  const { conversationId, continues, ...rest } = await asking(question, parts)
  return rest
}

export const ask = (question: Question): Promise<Answering> => askConversation(env, question)

export const stub = (id: string) => env.CONVERSATION.get(env.CONVERSATION.idFromName(id))

export const messagesOf = async (conversationId: string) =>
  (await collectionNamed('talk')).object.messages(conversationId)

/** Rows of D1. */
export const rowsOf = async (query: string, ...bound: unknown[]): Promise<Record<string, unknown>[]> =>
  (
    await env.DB.prepare(query)
      .bind(...bound)
      .all()
  ).results

/** What all turns so far have used, as D1 has it. */
export async function usedSoFar(): Promise<{ turns: number; tokens: number }> {
  const [sums] = await rowsOf(
    'SELECT coalesce(sum(turns), 0) AS turns, coalesce(sum(input_tokens), 0) AS tokens FROM usage',
  )
  return sums as { turns: number; tokens: number }
}

/** Takes tables away while `work` runs: D1 as far as they are concerned is down. */
export async function withoutTables(tables: string[], work: () => Promise<void>): Promise<void> {
  for (const table of tables) await env.DB.exec(`ALTER TABLE ${table} RENAME TO ${table}_away`)
  try {
    await work()
  } finally {
    for (const table of tables) await env.DB.exec(`ALTER TABLE ${table}_away RENAME TO ${table}`)
  }
}

/** A provider that answers at once. */
export const speaking = (answer: string): typeof fetch =>
  (async (_, init) => {
    if (!JSON.parse(String(init?.body)).stream) return whole(answer)
    return new Response(
      `data: ${JSON.stringify({ choices: [{ delta: { content: answer } }] })}\n\ndata: [DONE]\n\n`,
      { headers: { 'content-type': 'text/event-stream' } },
    )
  }) as typeof fetch

const whole = (content: string): Response =>
  Response.json({ choices: [{ message: { content }, finish_reason: 'stop' }] })

/** Takes a turn and reads all of it. */
export const take = async (request: AskRequest): Promise<TurnEvent[]> => read(await begin(request))

export { ADMIN } from '../../src/conversation/stored'

/** The events of a conversation after a position, to the end of the running turn. */
export async function eventsOf(id: string, after?: Position): Promise<TurnEvent[]> {
  const stream = unwrap(await conversation(id).events(ADMIN, after))
  if (stream === null) throw new Error('nothing comes after the position')
  return read(stream)
}

/** A provider that answers each request with a stream which the test writes. */
export interface Provider {
  /** sends a piece of the answer to the oldest request that is still open */
  say(text: string): Promise<void>
  /** ends the oldest request's stream, as a finished one, unless it was aborted */
  finish(): Promise<void>
  requests: Record<string, unknown>[]
  /** how many requests were aborted */
  aborted: number
  fetch: typeof fetch
}

/**
 * @param id of the conversation that asks: a stream belongs to the object that made it, so it is there that
 *   the test's pieces are written
 */
export function makeProvider(id: string): Provider {
  const open: WritableStreamDefaultWriter<Uint8Array>[] = []
  const encoder = new TextEncoder()
  const stub = env.CONVERSATION.get(env.CONVERSATION.idFromName(id))
  const provider: Provider = {
    requests: [],
    aborted: 0,
    say: async (text) => {
      await expect.poll(() => open.length).toBeGreaterThan(0)
      const line = `data: ${JSON.stringify({ choices: [{ delta: { content: text } }] })}\n\n`
      await runInDurableObject(stub, () => open[0]!.write(encoder.encode(line)))
    },
    finish: async () => {
      await expect.poll(() => open.length).toBeGreaterThan(0)
      const writer = open.shift()!
      await runInDurableObject(stub, async () => {
        // The reader may be gone by now: it stops at the end marker, or the request was aborted.
        await writer.write(encoder.encode('data: [DONE]\n\n')).catch(() => {})
        await writer.close().catch(() => {})
      })
    },
    fetch: async (_, init) => {
      const body = JSON.parse(String(init?.body))
      // A question is made to stand alone in one piece, and the test is not asked what it should be.
      if (!body.stream) return whole('the question, standing alone')
      provider.requests.push(body)
      const { readable, writable } = new IdentityTransformStream()
      const writer = writable.getWriter()
      init?.signal?.addEventListener('abort', () => {
        provider.aborted += 1
        writer.abort(new Error('aborted')).catch(() => {})
      })
      open.push(writer)
      return new Response(readable, { headers: { 'content-type': 'text/event-stream' } })
    },
  }
  return provider
}

/** The first search that is asked for never comes back. @returns how many were asked for so far */
export function hangFirstSearch(): () => number {
  let searches = 0
  const { collectionObject } = handle
  vi.spyOn(handle, 'collectionObject').mockImplementation((env, id) => {
    const object = collectionObject(env, id)
    return new Proxy(object, {
      get: (target, name: keyof typeof object) =>
        name === 'search' && searches++ === 0 ? () => new Promise(() => {}) : target[name],
    })
  })
  return () => searches
}
