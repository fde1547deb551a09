import { afterEach, beforeEach, expect, test } from 'vitest'
import { unhealthy, verify } from '../../../scripts/deploy/verify.mjs'
import { type RawServer, sendJson, startRawServer } from '../../models/raw-server'

let server: RawServer
beforeEach(async () => {
  server = await startRawServer()
})
afterEach(() => server.stop())

const WISH = { sample: false, model: 'local/extractive' }

test('an address that answers late is waited for', async () => {
  let tries = 0
  server.respond = (response) => {
    tries += 1
    sendJson(response, tries < 3 ? 522 : 200, { ok: true })
  }
  expect(await unhealthy(server.url, 60_000, 1)).toBeUndefined()
  expect(tries).toBe(3)
})

test('one that does not answer is told, with what it said last', async () => {
  server.respond = (response) => sendJson(response, 404, 'There is nothing here yet')
  const told = await verify(server.url, 'a key', WISH, -1)
  expect(told).toContain(`does not answer at ${server.url} yet: 404 There is nothing here yet`)
  expect(told).toContain('npx wrangler tail')
})

test('without a key the health is all', async () => {
  server.respond = (response) => sendJson(response, 200, { ok: true })
  expect(await verify(server.url, undefined, WISH)).toContain('It is healthy.')
  expect(server.received.map(({ path }) => path)).toEqual(['/health'])
  expect(await verify(undefined, 'a key', WISH)).toContain('--url')
})
