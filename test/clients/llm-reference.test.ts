/**
 * A real small language model behind Parley (`npm run reference:llm`, which brings it): what no scripted one does by itself. Left out where it
 * was not brought.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isThere } from '../reference/llm-server.mjs'
import { askInStream, gather } from './event-source'
import { createModel, createShows, question, request, unique } from './harness'

const ROOT = join(import.meta.dirname, '../..')
const CONTEXT = 1_024

// One thread of a busy machine writes a few words a second.
describe.skipIf(!isThere())('a real language model', { timeout: 90_000 }, () => {
  let server: ChildProcess
  let address = ''
  let model = ''
  let shows = ''

  beforeAll(async () => {
    const args = ['test/reference/llm.mjs', '--context', String(CONTEXT)]
    server = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] })
    let said = ''
    for await (const piece of server.stdout!) {
      said += piece
      const [, found] = /answers at (\S+)\. /.exec(said) ?? []
      address = found ?? ''
      if (address !== '') break
    }
    shows = await createShows()
    model = await makeModel({ max_tokens: 40 })
  }, 120_000)
  afterAll(() => void server?.kill('SIGKILL'))

  const makeModel = (more: Record<string, unknown> = {}) =>
    createModel({
      model_name: 'openai/smollm2',
      openai_url: address,
      max_bytes: 2_000,
      stream_options: { include_usage: true },
      ...more,
    })
  const ask = (text: string, asked = model, collection = shows) =>
    askInStream(
      { question: text, model: asked, collections: [collection] },
      { 'idempotency-key': crypto.randomUUID() },
    )
  const cancelled = async (): Promise<number> =>
    ((await (await fetch(`${address}/health`)).json()) as { cancelled: number }).cancelled

  test('answers in pieces, with its own count of tokens and none of its template', async () => {
    const events = await gather(await ask('Which series is about explorers?'))
    const done = events.find(({ event }) => event === 'done')!.data
    const pieces = events.filter(({ event }) => event === 'delta').map(({ data }) => data.text)
    expect(pieces.join('')).toBe(done.answer)
    expect(done.answer).not.toMatch(/<\|im_/)
    const { usage } = events.find(({ event }) => event === 'usage')!.data
    expect(usage.estimated).toBeUndefined()
    expect(usage.input_tokens).toBeGreaterThan(100)
    expect(usage.output_tokens).toBeGreaterThan(0)
  })

  test('keeps to the limit of an answer', async () => {
    const short = await makeModel({ max_tokens: 3 })
    const events = await gather(await ask('Tell everything about all series.', short))
    expect(events.at(-1)!.data).toMatchObject({ finish_reason: 'length' })
  })

  test('writes a question of its own for a follow-up', async () => {
    const [first] = await gather(await ask('Which series is about coral?'))
    const asked = question(model, shows, { conversation_id: first!.data.conversation_id })
    expect((await gather(await askInStream(asked, {}))).at(-1)!.event).toBe('done')
  })

  test('is stopped in the middle of an answer, and its request is cancelled', async () => {
    const before = await cancelled()
    const connection = await ask('Write a long story about explorers, in many chapters.', await makeModel())
    const id = connection.headers.get('x-parley-conversation-id')
    for await (const { event } of connection.events) {
      if (event === 'delta') await request('POST', `/conversations/${id}/stop`)
      if (event === 'error' || event === 'done') {
        expect(event).toBe('error')
        break
      }
    }
    await expect.poll(cancelled).toBe(before + 1)
  })

  test('goes on for a reader who left', async () => {
    const before = await cancelled()
    const connection = await ask('Which series is about a judge?')
    const id = connection.headers.get('x-parley-conversation-id')
    for await (const { event } of connection.events) if (event === 'retrieval') break
    connection.close()
    const turns = async () => (await request('GET', `/conversations/${id}`)).body.turns?.length ?? 0
    await expect.poll(turns, { timeout: 30_000 }).toBe(1)
    expect(await cancelled()).toBe(before)
  })

  test('says so where the prompt is longer than its context', async () => {
    const long = unique('long')
    await request('POST', '/collections', { name: long, fields: [{ name: 'text', type: 'string' }] })
    const text = 'Explorers travel far between the planets. '.repeat(200)
    expect((await request('POST', `/collections/${long}/documents`, { text })).status).toBe(201)
    const wide = await makeModel({ max_bytes: 16_384 })
    const connection = await ask('Where do explorers travel?', wide, long)
    const events = await gather(connection)
    expect(events.at(-1)!.data).toMatchObject({
      code: 'model_refused',
      message: expect.stringContaining(`exceeds the available context size (${CONTEXT} tokens)`),
    })
  })
})
