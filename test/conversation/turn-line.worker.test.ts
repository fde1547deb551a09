/** The line that each turn leaves in the log at its end. */
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { ask, QUESTION, setStage } from '../api/parley/stage'
import { call } from '../api/typesense/api'
import { asking, begin, makeProvider, openai, read, setStage as setFilms, stub, take } from './stage'

const SETTING = env.LOG_REQUESTS

let written: string[] = []
/** The lines of a type so far. */
const lines = (type: string): Record<string, unknown>[] =>
  written.map((line) => JSON.parse(line)).filter((line) => line.type === type)
/** The turns' lines, once as many are there: a turn may end after its reader has the answer. */
const turns = async (count = 1) => {
  await expect.poll(() => lines('turn').length, { timeout: 20_000 }).toBe(count)
  return lines('turn')
}

/** What an object's log holds. */
const logOf = (id: string) =>
  runInDurableObject(stub(id), (_, { storage }) =>
    storage.sql
      .exec<{ lines: string }>('SELECT lines FROM log')
      .toArray()
      .map(({ lines }) => lines)
      .join(''),
  )

beforeAll(async () => {
  await setStage()
  await setFilms({ id: 'films' })
})

beforeEach(() => {
  written = []
  vi.spyOn(console, 'log').mockImplementation((line) => void written.push(String(line)))
  vi.spyOn(console, 'error').mockReturnValue()
  env.LOG_REQUESTS = 'on'
})

afterEach(() => {
  env.LOG_REQUESTS = SETTING
  vi.restoreAllMocks()
})

describe('the data point of a turn', () => {
  const points: AnalyticsEngineDataPoint[] = []
  beforeEach(() => {
    points.length = 0
    env.TURNS = { writeDataPoint: (point) => void points.push(point ?? {}) }
  })
  afterEach(() => {
    delete env.TURNS
  })

  it('has the figures of its line, at the places that the queries name', async () => {
    await ask({ question: 'Who designed the Brandenburg Gate?' })
    const [line] = await turns()
    const [point] = points
    expect(points).toHaveLength(1)
    expect(new TextDecoder().decode(point!.indexes![0] as ArrayBuffer)).toBe('m')
    expect(point!.blobs).toEqual(
      ['outcome', 'protocol', 'model', 'answered_by', 'version', 'finish_reason'].map((name) => line![name]),
    )
    const figures = ['ms', 'waited_ms', 'search_ms', 'first_token_ms', 'input_tokens', 'output_tokens']
    expect(point!.doubles).toEqual([
      ...figures.map((name) => line![name]),
      line!.hits,
      line!.searches,
      line!.failed_searches,
      0,
    ])
    expect(JSON.stringify(point)).not.toContain('Brandenburg')
  })

  it('is written without a log too, and of a turn that failed', async () => {
    env.LOG_REQUESTS = 'off'
    const [, { conversation_id }] = await ask({ question: 'How high is the Brandenburg Gate?' })
    await ask({ question: 'And now?', conversation_id, query_by: 'nothing' })
    await expect.poll(() => points.length, { timeout: 20_000 }).toBe(2)
    expect(points.map(({ blobs, doubles }) => [blobs![0], doubles!.at(-1)])).toEqual([
      ['done', 0],
      ['search_failed', 404],
    ])
    expect(written).toEqual([])
  })
})

describe('the line of a turn', () => {
  it('says what it took, joins the line of its request, and quotes nothing', async () => {
    const [status, { conversation_id, answer }] = await ask({}, { headers: { 'x-request-id': 'front-1' } })
    expect(status).toBe(200)
    const [line] = await turns()
    expect(line).toEqual({
      type: 'turn',
      ts: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      version: env.CF_VERSION_METADATA.id,
      request_id: 'front-1',
      conversation_id,
      turn: 1,
      protocol: 'parley',
      model: 'm',
      answered_by: 'local/extractive',
      outcome: 'done',
      finish_reason: 'stop',
      searches: 1,
      failed_searches: 0,
      hits: 2,
      input_tokens: expect.any(Number),
      output_tokens: expect.any(Number),
      waited_ms: expect.any(Number),
      search_ms: expect.any(Number),
      first_token_ms: expect.any(Number),
      ms: expect.any(Number),
    })
    expect(lines('request').map(({ request_id }) => request_id)).toEqual(['front-1'])
    for (const text of [QUESTION, answer, '330 metres', 'xyz']) expect(written.join()).not.toContain(text)
  })

  it('names the assistant that was asked, as its trace does', async () => {
    await call('PUT', '/assistants/lined', { body: { model: 'm', collections: ['facts'] } })
    const [, { conversation_id: id }] = await call('POST', '/a/lined/conversations', {
      body: { question: QUESTION },
    })
    const [line] = await turns()
    expect(line).toMatchObject({ assistant: 'lined', protocol: 'parley', model: 'm' })
    const [, trace] = await call('GET', `/conversations/${id}/trace`)
    expect(trace.turns).toMatchObject([{ trace: { assistant: 'lined' } }])
  })

  it('comes for a turn that fails, with the code of its error, and its trace is kept', async () => {
    const [, { conversation_id: id }] = await ask()
    await turns()
    const [status] = await ask({ question: 'And now?', conversation_id: id, query_by: 'nothing' })
    expect(status).toBe(404)
    const [, line] = await turns(2)
    expect(line).toMatchObject({
      conversation_id: id,
      turn: 2,
      outcome: 'search_failed',
      status: 404,
      failed_searches: expect.any(Number),
      hits: 0,
    })
    expect(line!.failed_searches).toBeGreaterThan(0)
    expect(line).not.toHaveProperty('first_token_ms')
    const [, trace] = await call('GET', `/conversations/${id}/trace?turn=2`)
    expect(trace.turns).toMatchObject([{ turn: 2, error: { code: 'search_failed' } }])
  })

  it('comes for a turn whose provider fails, without the words of the provider', async () => {
    const detail = 'the organisation org-123 is out of money'
    vi.spyOn(globalThis, 'fetch').mockImplementation(async () =>
      Response.json({ error: { message: detail } }, { status: 401 }),
    )
    await take(await asking('Who directed Alien?', { model: openai, requestId: 'front-2' }))
    const [line] = await turns()
    expect(line).toMatchObject({ request_id: 'front-2', outcome: 'model_denied', hits: expect.any(Number) })
    expect(written.join()).not.toContain('org-123')
    expect(written.join()).not.toContain('sk-secret')
  })

  it('comes once for a turn whose object died before its end, with the id of its request', async () => {
    const request = await asking('Who directed Alien?', { model: openai, requestId: 'front-3' })
    const { conversationId: id } = request
    const provider = makeProvider(id)
    vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    const reading = read(await begin(request)).catch(() => [])
    await provider.say('half')
    // What the log has not got when its object dies, nobody knows.
    await expect.poll(() => logOf(id), { timeout: 20_000 }).toContain('half')
    await abortAllDurableObjects()
    await reading
    expect(lines('turn')).toEqual([])
    await runDurableObjectAlarm(stub(id))
    const [line] = await turns()
    expect(line).toMatchObject({
      request_id: 'front-3',
      conversation_id: id,
      turn: 1,
      outcome: 'interrupted',
      status: 503,
    })
    await abortAllDurableObjects()
    await runDurableObjectAlarm(stub(id))
    expect(lines('turn')).toHaveLength(1)
  })

  it.each(['off', 'audit'])('is not written where LOG_REQUESTS is %s', async (setting) => {
    env.LOG_REQUESTS = setting
    const [, { conversation_id }] = await ask()
    // The second turn begins only once the first has ended, its line included.
    expect((await ask({ conversation_id }))[0]).toBe(200)
    expect(lines('turn')).toEqual([])
  })
})
