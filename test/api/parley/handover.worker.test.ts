/** Conversations that are handed over to people: what the webhook gets, when it is down, and who may ask for it. */
import { env } from 'cloudflare:workers'
import { parse } from 'valibot'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import * as schemas from '../../../src/api/parley/response-schemas'
import { conversationObject } from '../../../src/conversation/conversation-object'
import { call, send } from '../typesense/api'
import { makeKey, NOT_FOUND, QUESTION, setStage } from './stage'

const WEBHOOK = 'https://desk.example/parley'
const HELP = { model: 'm', collections: ['facts'], handover: { webhook: WEBHOOK, after: 2 } }
const ANN = { 'x-parley-visitor': 'ann'.padEnd(40, '0') }
const BOB = { 'x-parley-visitor': 'bob'.padEnd(40, '0') }

let key: string
/** What the webhook was sent, and the status that it replies with. */
let received: { url: string; method: string; redirect: string; headers: Headers; body: string }[]
let status: number

beforeAll(async () => {
  await setStage()
  expect((await call('PUT', '/assistants/help', { body: HELP }))[0]).toBe(200)
  key = await makeKey({ actions: ['documents:search'], limits: { assistant: 'help' } })
})

beforeEach(() => {
  received = []
  status = 204
  vi.spyOn(console, 'error').mockReturnValue()
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (...sent) => {
    const { url, method, redirect, headers } = new Request(...sent)
    received.push({ url, method, redirect, headers, body: String(sent[1]?.body) })
    return new Response(null, { status })
  })
})

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

const begin = async (): Promise<string> => {
  const body = { question: QUESTION }
  const [code, answer] = await call('POST', '/a/help/conversations', { key, headers: ANN, body })
  expect(code).toBe(200)
  return answer.conversation_id
}

const handOver = (id: string, body: unknown, headers: Record<string, string> = ANN, assistant = 'help') =>
  call('POST', `/a/${assistant}/conversations/${id}/handover`, { key, headers, body })

/** What is still kept of a conversation's hand-overs. */
const kept = async (id: string) =>
  (await env.DB.prepare('SELECT * FROM deliveries WHERE conversation_id = ?').bind(id).all()).results

/** Sends what is due, as the cron trigger does. */
const sendDue = () => call('POST', '/webhooks/deliveries')

describe('a hand-over', () => {
  it('brings the webhook what was said and how to reach the visitor, signed as Standard Webhooks are', async () => {
    const [, front] = await call('GET', '/a/help', { key })
    expect(front.handover).toEqual({ form: true, after: 2 })
    const id = await begin()
    const asked = { contact: ' ann@example.com ', message: 'Please call me.' }
    expect(await handOver(id, asked)).toEqual([200, { delivered: true }])

    const [{ url, method, redirect, headers, body }] = received as [(typeof received)[number]]
    expect({ url, method, redirect }).toEqual({ url: WEBHOOK, method: 'POST', redirect: 'manual' })
    expect(JSON.parse(body)).toMatchObject({
      type: 'handover.requested',
      data: {
        id: headers.get('webhook-id'),
        assistant: 'help',
        conversation_id: id,
        contact: 'ann@example.com',
        message: 'Please call me.',
        turns: [
          {
            turn: 1,
            question: QUESTION,
            answer: expect.stringContaining('330 metres'),
            citations: [{ collection: 'facts', document_id: '0' }],
          },
        ],
      },
    })
    const [, assistant] = await call('GET', '/assistants/help')
    const secret = Buffer.from(assistant.handover_secret.replace(/^whsec_/, ''), 'base64')
    const algorithm = { name: 'HMAC', hash: 'SHA-256' }
    const signing = await crypto.subtle.importKey('raw', secret, algorithm, false, ['verify'])
    const signature = Buffer.from(headers.get('webhook-signature')!.replace(/^v1,/, ''), 'base64')
    const signed = `${headers.get('webhook-id')}.${headers.get('webhook-timestamp')}.${body}`
    expect(await crypto.subtle.verify('HMAC', signing, signature, new TextEncoder().encode(signed))).toBe(
      true,
    )
    // The page learns neither.
    expect(JSON.stringify(front)).not.toMatch(/desk\.example|whsec/)
    expect(JSON.stringify(await kept(id))).not.toMatch(/ann@example|call me/)
  })

  it('is sent again until the webhook takes it, under the same id, and is then forgotten', async () => {
    const id = await begin()
    status = 503
    expect(await handOver(id, { contact: '+33 1 23' })).toEqual([200, { delivered: false }])
    vi.useFakeTimers({ now: Date.now(), toFake: ['Date'] })
    await sendDue()
    expect(received).toHaveLength(1)
    vi.setSystemTime(Date.now() + 31_000)
    await sendDue()
    expect(received).toHaveLength(2)
    status = 200
    vi.setSystemTime(Date.now() + 61_000)
    await sendDue()
    await sendDue()
    expect(received).toHaveLength(3)
    expect(new Set(received.map(({ headers }) => headers.get('webhook-id')))).toHaveProperty('size', 1)
    expect(JSON.stringify(await kept(id))).not.toContain('+33')
  })

  it('is given up after three days, and goes with its conversation', async () => {
    const [old, deleted] = [await begin(), await begin()]
    status = 500
    await handOver(old, { contact: 'a@b.example' })
    await handOver(deleted, { contact: 'a@b.example' })
    expect(await call('DELETE', `/conversations/${deleted}`, { key, headers: ANN })).toEqual([
      200,
      { id: deleted },
    ])
    received = []
    vi.useFakeTimers({ now: Date.now() + 4 * 86_400_000, toFake: ['Date'] })
    await sendDue()
    await sendDue()
    expect(received).toHaveLength(1)
    expect(await kept(old)).toMatchObject([{ next_at: null, delivered_at: null }])
    expect(await kept(deleted)).toEqual([])
  })

  it('is asked for by those who may read the conversation, three times a day', async () => {
    const id = await begin()
    expect(await handOver(id, { contact: 'b@b.example' }, BOB)).toEqual(NOT_FOUND)
    for (const contact of ['one', 'two', 'three']) {
      expect(await handOver(id, { contact })).toEqual([200, { delivered: true }])
    }
    const [code, refusal] = await handOver(id, { contact: 'four' })
    expect([code, refusal.message]).toEqual([429, 'A conversation is handed over 3 times a day at most.'])
    expect(received).toHaveLength(3)
    expect(await handOver(id, { contact: ' ' })).toMatchObject([400, { message: /^`contact`: / }])
  })

  it('needs an assistant with a webhook on a host that may be called', async () => {
    const put = (handover: unknown) => call('PUT', '/assistants/other', { body: { ...HELP, handover } })
    expect((await put({ webhook: 'http://10.0.0.1/hook' }))[1].message).toMatch(/ALLOWED_HOSTS/)
    expect((await put({}))[1].message).toMatch(/Give either `url` or `webhook`/)
    expect((await put({ url: 'javascript:alert(1)' }))[1].message).toMatch(/begins with `https/)
    expect((await put({ url: 'mailto:help@shop.example' }))[0]).toBe(200)
    expect((await call('GET', '/a/other'))[1].handover).toEqual({ url: 'mailto:help@shop.example' })
    const id = await begin()
    const body = { contact: 'a@b.example' }
    const [code, { message }] = await call('POST', `/a/other/conversations/${id}/handover`, { body })
    expect([code, message]).toEqual([
      400,
      'The assistant `other` takes no messages to people: open mailto:help@shop.example.',
    ])
    // Whoever holds only the object reaches nothing that was not stored.
    expect(
      await conversationObject(env, id).recorded({ owner: 'nobody', userId: '' } as never),
    ).toMatchObject({
      ok: false,
    })
  })
})

describe('a reply of a person', () => {
  const reply = (id: string, body: unknown, options: Parameters<typeof call>[2] = {}) =>
    call('POST', `/conversations/${id}/replies`, { ...options, body })
  const MARY = { author: ' Mary ', message: 'We deliver on Monday.' }

  it('is a turn of its author, which readers get at once, history keeps and the next question follows', async () => {
    const id = await begin()
    await handOver(id, { contact: 'ann@example.com' })
    expect(await reply(id, MARY)).toEqual([200, { turn: 2 }])
    const [, stored] = await call('GET', `/conversations/${id}`, { key, headers: ANN })
    expect(stored).toMatchObject({
      handed_over_at: expect.any(Number),
      turns: [
        { turn: 1, question: QUESTION },
        { turn: 2, question: '', answer: 'We deliver on Monday.', author: 'Mary', citations: [] },
      ],
    })
    expect(stored.turns[0]).not.toHaveProperty('author')
    expect(parse(schemas.Conversation, stored)).toEqual(stored)
    // A page that shows the conversation asks for what came after its last turn.
    const after = { key, headers: { ...ANN, 'last-event-id': '1.999999999' } }
    const followed = await send('GET', `/conversations/${id}/events`, after)
    const events = (await followed.text()).split('\n').filter((line) => line.startsWith('data:'))
    expect(events.map((line) => JSON.parse(line.slice(5)))).toEqual([
      expect.objectContaining({ question: '' }),
      { text: 'We deliver on Monday.' },
      expect.objectContaining({ author: 'Mary', answer: 'We deliver on Monday.' }),
    ])
    const { results } = await env.DB.prepare(
      'SELECT role, message FROM messages WHERE conversation_id = ? ORDER BY timestamp, role DESC',
    )
      .bind(id)
      .all()
    expect(results.at(-1)).toEqual({ role: 'assistant', message: 'We deliver on Monday.' })
    const [code, next] = await call('POST', '/a/help/conversations', {
      key,
      headers: ANN,
      body: { question: 'And who was its architect?', conversation_id: id },
    })
    expect([code, next.turn]).toEqual([200, 3])
    // It is no model's, so it costs nothing and is no gap.
    const [, { gaps }] = await call('GET', '/gaps')
    expect(gaps.filter(({ question }: { question: string }) => question === '')).toEqual([])
  })

  it('needs somebody who asked for people, and a key that may reply', async () => {
    const id = await begin()
    expect((await reply(id, MARY))[1].message).toMatch(/^Nobody has asked for a person/)
    await handOver(id, { contact: 'ann@example.com' })
    const desk = await makeKey({ actions: ['conversations:reply'] })
    expect(await reply(id, MARY, { key: desk })).toEqual([200, { turn: 2 }])
    expect((await call('GET', `/conversations/${id}`, { key: desk }))[0]).toBe(401)
    // Neither the visitor nor a page passes for one.
    expect((await reply(id, MARY, { key, headers: ANN }))[0]).toBe(401)
    expect((await reply(id, { author: ' ', message: 'x' }))[0]).toBe(400)
    expect((await reply(crypto.randomUUID(), MARY))[0]).toBe(404)
  })
})

describe('office hours', () => {
  const HOURS = { days: ['mon', 'tue'], from: '09:00', to: '17:30', time_zone: 'America/New_York' }
  const put = (hours: unknown) =>
    call('PUT', '/assistants/desk', {
      body: { ...HELP, handover: { webhook: WEBHOOK, hours, outside: 'We are back on Monday.' } },
    })

  it('say to a page what is said outside of them, by the clock of their place', async () => {
    expect((await put(HOURS))[0]).toBe(200)
    const at = async (time: string) => {
      vi.useFakeTimers({ now: Date.parse(time), toFake: ['Date'] })
      return (await call('GET', '/a/desk'))[1].handover
    }
    const outside = { form: true, outside: 'We are back on Monday.' }
    // 30 November 2026 is a Monday, and New York is five hours behind UTC.
    expect(await at('2026-11-30T13:59:00Z')).toEqual(outside)
    expect(await at('2026-11-30T14:00:00Z')).toEqual({ form: true })
    expect(await at('2026-12-01T22:29:00Z')).toEqual({ form: true })
    expect(await at('2026-12-01T22:30:00Z')).toEqual(outside)
    expect(await at('2026-12-02T15:00:00Z')).toEqual(outside)
  })

  it('are refused where they say nothing', async () => {
    for (const wrong of [
      { to: '08:00' },
      { from: '9:00' },
      { days: [] },
      { days: ['monday'] },
      { time_zone: 'Berlin' },
    ])
      expect((await put({ ...HOURS, ...wrong }))[0]).toBe(400)
  })
})
