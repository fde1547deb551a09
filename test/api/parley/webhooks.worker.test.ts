/** Webhooks: who registers them, what they are told, and what becomes of messages that nobody takes. */
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { sweepExpired } from '../../../src/conversation/expiry'
import { claimDue } from '../../../src/db/deliveries'
import { imported } from '../../../src/question-sets/run'
import { sendWebhooks } from '../../../src/webhooks/send'
import { call } from '../typesense/api'
import { makeKey, QUESTION, setStage } from './stage'

const DAY_MS = 86_400_000
const URL = 'https://hooks.example/parley'

/** What receivers were sent, and the status that they reply with, by address. */
let received: { url: string; headers: Headers; body: string }[]
let statuses: Record<string, number>

beforeAll(setStage)

beforeEach(() => {
  received = []
  statuses = {}
  vi.spyOn(console, 'error').mockReturnValue()
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (...sent) => {
    const { url, headers } = new Request(...sent)
    received.push({ url, headers, body: String(sent[1]?.body) })
    return new Response(null, { status: statuses[url] ?? 204 })
  })
})

afterEach(async () => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  const [, { webhooks }] = await call('GET', '/webhooks')
  for (const { name } of webhooks) await call('DELETE', `/webhooks/${name}`)
})

const put = (name: string, events: string[], more: Record<string, unknown> = {}) =>
  call('PUT', `/webhooks/${name}`, { body: { url: URL, events, ...more } })

const ask = async (): Promise<string> => {
  const body = { question: QUESTION, model: 'm', collections: ['facts'] }
  const [status, { conversation_id }] = await call('POST', '/conversations', { body })
  expect(status).toBe(200)
  return conversation_id
}

/** Sends what is due, as the cron trigger does. */
const sendDue = () => call('POST', '/webhooks/deliveries')
const deliveries = async () => (await call('GET', '/webhooks/deliveries'))[1].deliveries
const bodies = () => received.map(({ body }) => JSON.parse(body))

async function isSignedWith(secret: string, { headers, body }: (typeof received)[number]): Promise<boolean> {
  const bytes = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, [
    'verify',
  ])
  const signature = Buffer.from(headers.get('webhook-signature')!.replace(/^v1,/, ''), 'base64')
  const signed = `${headers.get('webhook-id')}.${headers.get('webhook-timestamp')}.${body}`
  return crypto.subtle.verify('HMAC', key, signature, new TextEncoder().encode(signed))
}

describe('a webhook', () => {
  it('shows its secret once, keeps it sealed, and gets another one on request', async () => {
    const [status, made] = await put('crm', ['turn.finished'])
    expect([status, made]).toEqual([
      200,
      expect.objectContaining({ name: 'crm', url: URL, events: ['turn.finished'], waiting: 0, full: false }),
    ])
    expect(made.secret).toMatch(/^whsec_[\w+/]{43}=$/)
    const [, changed] = await put('crm', ['feedback', 'feedback'])
    expect(changed).toMatchObject({ events: ['feedback'], created_at: made.created_at })
    expect(changed).not.toHaveProperty('secret')
    const [, { webhooks }] = await call('GET', '/webhooks')
    expect(webhooks).toEqual([changed])
    const { results } = await env.DB.prepare("SELECT * FROM resources WHERE kind = 'webhook'").all()
    expect(JSON.stringify(results)).not.toContain(made.secret.slice(6))
    const [, renewed] = await put('crm', ['feedback'], { new_secret: true })
    expect(renewed.secret).toMatch(/^whsec_/)
    expect(renewed.secret).not.toBe(made.secret)
  })

  it('is registered by the admin key alone, at a host that may be called', async () => {
    const key = await makeKey({ actions: ['*'] })
    const own = { url: URL, events: ['feedback'] }
    for (const [method, path] of [
      ['GET', '/webhooks'],
      ['PUT', '/webhooks/crm'],
      ['GET', '/webhooks/deliveries'],
      ['POST', '/webhooks/deliveries'],
      ['POST', '/webhooks/deliveries/x'],
    ] as const) {
      const [status, { message }] = await call(method, path, { key, ...(method === 'PUT' && { body: own }) })
      expect([status, message]).toEqual([401, expect.stringContaining('only the admin key')])
    }
    expect((await put('crm', ['feedback'], { url: 'http://169.254.169.254/' }))[1].message).toMatch(
      /ALLOWED_HOSTS/,
    )
    expect((await put('crm', ['turn.began']))[0]).toBe(400)
    expect((await put('deliveries', ['feedback']))[1].message).toMatch(/taken/)
    expect(await call('POST', '/webhooks/none/test')).toMatchObject([404, {}])
    for (let at = 0; at < 20; at++) expect((await put(`w${at}`, ['feedback']))[0]).toBe(200)
    expect((await put('w20', ['feedback']))[1].message).toMatch(/20 webhooks already/)
  })

  it('is told of a turn once that has ended, signed, within the minute and never by the turn itself', async () => {
    const [, { secret }] = await put('crm', ['turn.finished'])
    await put('other', ['feedback'])
    const id = await ask()
    expect(received).toEqual([])
    expect(await deliveries()).toMatchObject([
      { webhook: 'crm', event: 'turn.finished', conversation_id: id, turn: 1, state: 'waiting', tries: 0 },
    ])
    await sendWebhooks(env)
    expect(bodies()).toEqual([
      {
        type: 'turn.finished',
        timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
        data: expect.objectContaining({
          conversation_id: id,
          turn: 1,
          protocol: 'parley',
          question: QUESTION,
          answer: expect.stringContaining('330 metres'),
          citations: [expect.objectContaining({ collection: 'facts', document_id: '0' })],
        }),
      },
    ])
    expect(await isSignedWith(secret, received[0]!)).toBe(true)
    expect(await deliveries()).toMatchObject([{ state: 'delivered', tries: 1, outcome: 'Status 204' }])
    await sendWebhooks(env)
    expect(received).toHaveLength(1)
  })

  it('is told of feedback and of imports', async () => {
    await put('crm', ['feedback', 'import.finished'])
    const id = await ask()
    const said = { rating: 'down', comment: 'Too short.', reasons: ['incomplete'] }
    await call('PUT', `/conversations/${id}/turns/1/feedback`, { body: said })
    await imported(env, 'facts', 'site')
    await call('POST', '/question_sets', { body: { collection: 'facts' } })
    await sendDue()
    const { data } = bodies().find(({ type }) => type === 'feedback')
    expect(data).toMatchObject({ ...said, score: null, conversation_id: id, turn: 1, question: QUESTION })
    expect(bodies().flatMap(({ type, data }) => (type === 'import.finished' ? [data] : []))).toEqual([
      { collection: 'facts', source: 'site' },
      { collection: 'facts' },
    ])
  })

  it('costs nothing where none wants an event', async () => {
    await put('crm', ['import.finished'])
    await ask()
    expect(await deliveries()).toEqual([])
  })
})

describe('a message that is not taken', () => {
  it('is sent again at growing gaps under its id, and is given up after three days', async () => {
    await put('crm', ['turn.finished'])
    statuses = { [URL]: 503 }
    await ask()
    const began = Date.now()
    vi.useFakeTimers({ now: began, toFake: ['Date'] })
    const gaps: number[] = []
    for (let tries = 0; tries < 4; tries++) {
      await sendDue()
      const [{ next_at }] = await deliveries()
      gaps.push(Math.round((next_at - Date.now()) / 1000))
      vi.setSystemTime(next_at)
    }
    expect(gaps).toEqual([30, 60, 120, 240])
    expect(await deliveries()).toMatchObject([
      { state: 'waiting', tries: 4, outcome: 'The webhook replied with status 503.' },
    ])
    const [{ id }] = await deliveries()
    expect(received.map(({ headers }) => headers.get('webhook-id'))).toEqual([id, id, id, id])
    vi.setSystemTime(began + 3 * DAY_MS + 1)
    await env.DB.exec('UPDATE conversations SET expires_at = 9e15; ')
    await env.DB.exec('UPDATE turns SET expires_at = 9e15; ')
    await sendDue()
    expect(await deliveries()).toMatchObject([{ state: 'given_up', tries: 5 }])
    received = []
    await sendDue()
    expect(received).toEqual([])
    // It is seen, and may be sent again, until a week is over.
    statuses = {}
    expect(await call('POST', `/webhooks/deliveries/${id}`)).toMatchObject([200, { state: 'delivered' }])
    expect(received).toHaveLength(1)
    expect(await call('POST', `/webhooks/deliveries/${id}`)).toMatchObject([404, {}])
    await sweepExpired(env, (began + 8 * DAY_MS) / 1000)
    expect(await deliveries()).toEqual([])
  })

  it('is not lost where whoever was to send it dies, and is not sent twice meanwhile', async () => {
    await put('crm', ['turn.finished'])
    await ask()
    expect(await claimDue(env.DB, 10, Date.now())).toHaveLength(1)
    await sendDue()
    expect(received).toEqual([])
    vi.useFakeTimers({ now: Date.now() + 31_000, toFake: ['Date'] })
    await sendDue()
    expect(received).toHaveLength(1)
    expect(await deliveries()).toMatchObject([{ state: 'delivered', tries: 2 }])
  })

  it('keeps nobody waiting but its own receiver', async () => {
    const down = 'https://down.example/'
    await put('down', ['turn.finished'], { url: down })
    await put('up', ['turn.finished'])
    statuses = { [down]: 500 }
    for (let turns = 0; turns < 3; turns++) await ask()
    expect(await sendDue()).toEqual([200, { sent: 3, left: false }])
    expect(received.filter(({ url }) => url === down)).toHaveLength(1)
  })

  it('goes with its conversation, its turn or its webhook', async () => {
    await put('crm', ['turn.finished'])
    const [deleted, erased] = [await ask(), await ask()]
    await call('DELETE', `/conversations/${deleted}`)
    expect(await deliveries()).toMatchObject([{ conversation_id: erased }])
    await env.DB.prepare('DELETE FROM turns WHERE conversation_id = ?').bind(erased).run()
    await sendDue()
    expect(await deliveries()).toMatchObject([{ state: 'given_up', outcome: 'The turn is deleted.' }])
    await call('DELETE', '/webhooks/crm')
    expect(await deliveries()).toEqual([])
    expect(received).toEqual([])
  })

  it('is not stored where too many wait', async () => {
    await put('crm', ['turn.finished'])
    await env.DB.exec(
      "INSERT INTO deliveries (id, webhook, event, data, created_at, tries, next_at) WITH RECURSIVE n(at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM n WHERE at < 5000) SELECT 'x' || at, 'crm', 'turn.finished', '{}', 0, 0, 9e15 FROM n",
    )
    await ask()
    expect((await call('GET', '/webhooks'))[1].webhooks).toMatchObject([{ waiting: 5000, full: true }])
  })
})

it('a test is answered with what came of it', async () => {
  await put('crm', ['feedback'])
  expect(await call('POST', '/webhooks/crm/test')).toMatchObject([
    200,
    { state: 'delivered', event: 'webhook.test' },
  ])
  expect(bodies()).toMatchObject([{ type: 'webhook.test', data: { message: 'This is a test.' } }])
  vi.mocked(fetch).mockRejectedValue(new Error('Network connection lost.'))
  expect(await call('POST', '/webhooks/crm/test')).toMatchObject([
    200,
    { state: 'waiting', outcome: 'Network connection lost.', next_at: expect.any(Number) },
  ])
})
