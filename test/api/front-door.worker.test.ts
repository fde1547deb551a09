/** Requests that begin turns in great numbers: what is past the bound is refused before anything is done for it. */
import { createExecutionContext, waitOnExecutionContext } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, it, vi } from 'vitest'
import { waitToBegin } from '../../src/api/http/admit-turn'
import { app } from '../../src/app'

const MESSAGE = 'Too many questions are asked at once. Try again in a few seconds.'

/** statements that the database was asked to run */
let statements = 0
const DB = new Proxy(env.DB, {
  get(db, name) {
    if (name === 'prepare' || name === 'batch') statements += 1
    const value = Reflect.get(db, name)
    return typeof value === 'function' ? value.bind(db) : value
  },
})

async function send(method: string, path: string, body?: unknown): Promise<Response> {
  const context = createExecutionContext()
  const request = new Request(`http://parley${path}`, {
    method,
    // A key that there is not: whoever looked it up would answer 401.
    headers: { 'x-typesense-api-key': crypto.randomUUID() },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const response = await app.fetch(request, { ...env, DB } as Cloudflare.Env, context)
  await waitOnExecutionContext(context)
  return response
}

/** Fills the line of those who wait to begin, and runs `work` meanwhile. */
async function crowded(work: () => Promise<void>): Promise<void> {
  vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] })
  try {
    const line = Array.from({ length: 700 }, () => waitToBegin().catch(() => {}))
    await work()
    await vi.runAllTimersAsync()
    await Promise.all(line)
  } finally {
    vi.useRealTimers()
  }
}

it('refuses questions on every protocol in its own shape, and answers all else', async () => {
  expect((await send('POST', '/conversations', {})).status).toBe(401)
  expect(statements).toBeGreaterThan(0)
  await crowded(async () => {
    statements = 0
    for (const [method, path] of [
      ['POST', '/conversations'],
      ['POST', '/ui/guide'],
      ['POST', '/multi_search?conversation=true&q=a'],
      ['GET', '/collections/facts/documents/search?conversation=true&q=a'],
    ] as const) {
      const response = await send(method, path, method === 'POST' ? {} : undefined)
      expect([path, response.status, response.headers.get('retry-after')]).toEqual([path, 503, '5'])
      expect(await response.json()).toEqual({ message: MESSAGE })
    }
    for (const path of ['/v1/chat/completions', '/v1/responses']) {
      const response = await send('POST', path, {})
      expect([path, response.status, response.headers.get('retry-after')]).toEqual([path, 503, '5'])
      expect(await response.json()).toEqual({
        error: { message: MESSAGE, type: 'server_error', param: null, code: 'server_error' },
      })
    }
    // Its clients repeat a bare 503 for minutes, and wait out a 429.
    const chat = await send('POST', '/chat/stream', {})
    expect([chat.status, chat.headers.get('retry-after')]).toEqual([429, '1'])
    expect(await chat.json()).toMatchObject({ error: MESSAGE })
    expect(statements).toBe(0)

    expect((await send('GET', '/health')).status).toBe(200)
    expect((await send('GET', '/conversations')).status).toBe(401)
    expect((await send('GET', '/collections/facts/documents/search?q=a')).status).toBe(401)
  })
})
