/** The server is killed (SIGKILL) after events were acknowledged: each of them counts, and counts once. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { KEY } from './harness'
import { OwnParley } from './own-parley'

let server: OwnParley

beforeAll(async () => {
  server = new OwnParley()
  await server.boot()
})
afterAll(() => server.remove())

async function api(method: string, path: string, body?: unknown) {
  const response = await fetch(server.url + path, {
    method,
    headers: { 'x-typesense-api-key': KEY },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return JSON.parse(text)
}

test('acknowledged events survive, and a flush that was cut short adds none twice', async () => {
  const fields = [{ name: 'popularity', type: 'int32' }]
  await api('POST', '/collections', { name: 'books', fields })
  await api('POST', '/collections/books/documents', { id: '1', popularity: 0 })
  await api('POST', '/analytics/rules', {
    name: 'clicks',
    type: 'counter',
    collection: 'books',
    event_type: 'click',
    params: { counter_field: 'popularity', weight: 1 },
  })
  let sent = 0
  for (let life = 0; life < 3; life++) {
    for (let event = 0; event < 10; event++, sent++) {
      await api('POST', '/analytics/events', { name: 'clicks', data: { doc_id: '1' } })
    }
    // The flush may have been made, or not, when the server dies.
    const flushed = api('POST', '/analytics/flush').catch(() => undefined)
    await new Promise((resolve) => setTimeout(resolve, life * 3))
    await server.kill()
    await flushed
    await server.boot()
  }
  await api('POST', '/analytics/flush')
  expect(await api('GET', '/collections/books/documents/1')).toEqual({ id: '1', popularity: sent })
  expect(await api('GET', '/analytics/status')).toMatchObject({ doc_counter_events: 0 })
})
