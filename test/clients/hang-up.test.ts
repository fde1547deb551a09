/** Callers who hang up while they wait for a whole answer, over real sockets: their retry gets that answer. */
import { once } from 'node:events'
import { request as open } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createModel, createShows, KEY, query, url } from './harness'
import { type Paced, startPaced, words } from './paced'

let shows: string
/** One for each test, which counts what it is asked: all of them wait at the same time. */
const providers: Paced[] = []

beforeAll(async () => {
  shows = await createShows()
})
afterAll(async () => {
  for (const paced of providers) await paced.stop()
})

async function provider(): Promise<Paced> {
  const paced = await startPaced()
  providers.push(paced)
  return paced
}

interface Sent {
  method: 'GET' | 'POST'
  path: string
  body?: string
}

/** Of one client: `open` and `fetch` would each add their own. */
const HEADERS = { 'x-typesense-api-key': KEY, 'user-agent': 'a client', 'accept-language': 'en' }

/** Sends a request and hangs up after a while, without having read anything. */
async function hangUp({ method, path, body }: Sent, after: number): Promise<void> {
  const sent = open(url + path, { method, headers: HEADERS, agent: false })
  sent.on('error', () => {})
  sent.end(body)
  await once(sent, 'socket')
  await new Promise((resolve) => setTimeout(resolve, after))
  sent.destroy()
}

/** biome-ignore lint/suspicious/noExplicitAny: replies are checked field by field */
async function send({ method, path, body }: Sent): Promise<any> {
  const response = await fetch(url + path, {
    method,
    headers: HEADERS,
    ...(body !== undefined && { body }),
  })
  expect([response.status, response.ok || (await response.text())]).toEqual([200, true])
  return response.json()
}

const WORDS = 10
/** An answer of more than a second: of a quicker one it is not noticed that its caller has gone. */
const GAP = 150

const typesense = (model: string): Sent => ({
  method: 'GET',
  path: query(`/collections/${shows}/documents/search`, {
    q: 'an action series',
    query_by: 'title',
    conversation: true,
    conversation_model_id: model,
  }),
})

const parley = (model: string): Sent => ({
  method: 'POST',
  path: '/conversations',
  body: JSON.stringify({ question: 'an action series', model, collections: [shows] }),
})

/** Asks in a conversation, as a stream, and reads up to the first word of the answer. */
async function begin(model: string, question: string, conversation?: string) {
  const leaving = new AbortController()
  const response = await fetch(`${url}/conversations`, {
    method: 'POST',
    headers: { ...HEADERS, accept: 'text/event-stream' },
    body: JSON.stringify({
      question,
      model,
      collections: [shows],
      stream: true,
      ...(conversation && { conversation_id: conversation }),
    }),
    signal: leaving.signal,
  })
  expect([response.status, response.ok || (await response.text())]).toEqual([200, true])
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (!text.includes('event: delta')) {
    const { value, done } = await reader.read()
    if (done) throw new Error(`The stream ended: ${text}`)
    text += value
  }
  const id = /"conversation_id":"([^"]+)"/.exec(text)?.[1] ?? ''
  return { id, reader, leave: () => leaving.abort() }
}

describe.concurrent('a caller', () => {
  test.for([
    ['Typesense', typesense, (reply: Awaited<ReturnType<typeof send>>) => reply.conversation],
    ['Parley', parley, (reply: Awaited<ReturnType<typeof send>>) => reply],
  ] as const)(
    '%s: who hung up is told the answer, and asked once; who has it gets a new turn',
    // Of tests that run at once, only the test's own `expect` knows in which one it polls.
    async ([, make, read], { expect }) => {
      const paced = await provider()
      const model = await createModel({ model_name: `openai/paced-${WORDS}-${GAP}`, openai_url: paced.url })
      const asked = make(model)
      const before = paced.begun
      await hangUp(asked, (WORDS * GAP) / 3)
      await expect.poll(() => paced.begun, { timeout: 10_000 }).toBe(before + 1)
      // Until well after the answer was there and nobody took it.
      await new Promise((resolve) => setTimeout(resolve, WORDS * GAP + 2_500))

      const retried = read(await send(asked))
      expect(retried.answer).toBe(words(WORDS).join(''))
      expect(paced.begun).toBe(before + 1)

      // Who asks again at once may not have got it either.
      await new Promise((resolve) => setTimeout(resolve, 2_500))
      const again = read(await send(asked))
      expect(again.conversation_id).not.toBe(retried.conversation_id)
      expect(paced.begun).toBe(before + 2)
    },
  )

  test('who leaves an answer for a new question does not wait for its end, and it is not remembered', async () => {
    const paced = await provider()
    const model = await createModel({ model_name: 'openai/paced-600-100', openai_url: paced.url })
    const before = paced.abandoned
    const first = await begin(model, 'an action series')
    first.leave()
    const second = await begin(model, 'a comedy', first.id)
    expect(paced.abandoned).toBe(before + 1)
    const { turns } = await send({ method: 'GET', path: `/conversations/${first.id}` })
    expect(turns.filter(({ answer }: { answer?: string }) => answer)).toEqual([])
    await send({ method: 'POST', path: `/conversations/${first.id}/stop` })
    second.leave()
  })

  test('an answer that somebody else reads goes on, and the new question waits', async () => {
    const paced = await provider()
    const model = await createModel({ model_name: `openai/paced-20-${GAP}`, openai_url: paced.url })
    const before = paced.abandoned
    const first = await begin(model, 'an action series')
    const following = await fetch(`${url}/conversations/${first.id}/events`, { headers: HEADERS })
    const followed = following.text()
    first.leave()
    const second = await begin(model, 'a comedy', first.id)
    expect(paced.abandoned).toBe(before)
    expect(await followed).toContain('event: done')
    const { turns } = await send({ method: 'GET', path: `/conversations/${first.id}` })
    expect(turns[0]).toMatchObject({ question: 'an action series', answer: words(20).join('') })
    second.leave()
  })
})
