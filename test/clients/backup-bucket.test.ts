/** `parley backup` into R2 and `parley restore` from it, by R2's S3 API. */
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { Bucket } from '../../scripts/parley/backup/bucket.mjs'
import { KEY } from './harness'
import { OwnParley } from './own-parley'
import { BUCKET, type R2Store, startR2Store } from './r2-store'
import { runParley } from './run-parley'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 })

const old = new OwnParley()
const fresh = new OwnParley()
let store: R2Store
let folder: string

const call = async (server: OwnParley, method: string, path: string, body?: unknown) => {
  const response = await fetch(server.url + path, {
    method,
    headers: { 'x-typesense-api-key': KEY },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  expect([path, response.ok]).toEqual([path, true])
  return (await response.json()) as { found: number }
}

const env = () => ({
  AWS_ACCESS_KEY_ID: store.accessKeyId,
  AWS_SECRET_ACCESS_KEY: store.secretAccessKey,
  AWS_ENDPOINT_URL_S3: store.url,
})
const parley = (server: OwnParley, args: string[], more: Record<string, string> = {}) =>
  runParley(folder, [...args, '--json'], { PARLEY_URL: server.url, ...env(), ...more })

beforeAll(async () => {
  store = await startR2Store()
  await Promise.all([old.boot(), fresh.boot()])
  await call(old, 'POST', '/collections', { name: 'films', fields: [{ name: 'title', type: 'string' }] })
  for (const id of ['1', '2', '3']) {
    await call(old, 'POST', '/collections/films/documents', { id, title: `The lighthouse, part ${id}` })
  }
})

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-bucket-'))
  return () => rmSync(folder, { recursive: true, force: true })
})

afterAll(async () => {
  await Promise.all([old.remove(), fresh.remove()])
  await store.stop()
})

test('a deployment goes into R2, and from there into a fresh one', async () => {
  // The first request is answered as a store does that has too much to do.
  store.refuseOnce(/^GET monday\/manifest/, 503, 'SlowDown')
  const place = `r2://${BUCKET}/monday`
  const backup = await parley(old, ['backup', place])
  expect([backup.code, backup.err]).toEqual([0, ''])
  expect(backup.json).toMatchObject({ folder: place, documents: { films: 3 } })
  const keys = await store.keys()
  expect(keys).toContain('monday/manifest.json')
  expect(keys).toContain('monday/documents-1.jsonl')
  expect(await store.read('monday/documents-1.jsonl')).toContain('The lighthouse, part 3')
  // The manifest is there last: without it there is no backup.
  expect(store.calls.filter((made) => made.startsWith('PUT')).at(-1)).toBe('PUT monday/manifest.json')
  expect(readdirSync(folder)).toEqual([])

  const again = await parley(old, ['backup', place])
  expect([again.code, again.err]).toEqual([2, expect.stringContaining('holds a backup already')])

  const restored = await parley(fresh, ['restore', place])
  expect([restored.code, restored.err]).toEqual([0, ''])
  expect(restored.json).toMatchObject({ documents: { films: 3 }, refused: [], differences: [] })
  expect(await call(fresh, 'GET', '/collections/films/documents/search?q=lighthouse&query_by=title')).toEqual(
    expect.objectContaining({ found: 3 }),
  )
  expect(readdirSync(folder)).toEqual([])
})

test('an upload that broke off goes on, and what came down damaged is not restored', async () => {
  const place = `r2://${BUCKET}/half`
  store.refuseOnce(/^PUT half\/manifest/, 403, 'AccessDenied')
  const cut = await parley(old, ['backup', place])
  expect([cut.code, cut.err]).toEqual([4, expect.stringContaining('Object Read & Write')])
  expect(await store.keys()).not.toContain('half/manifest.json')
  const missing = await parley(fresh, ['restore', place, '--merge'])
  expect([missing.code, missing.err]).toEqual([2, expect.stringContaining('holds no whole backup')])

  store.calls.length = 0
  expect((await parley(old, ['backup', place])).code).toBe(0)
  expect(store.calls.filter((made) => made.startsWith('PUT'))).toEqual(['PUT half/manifest.json'])

  await store.write('half/documents-1.jsonl', (await store.read('half/documents-1.jsonl')).replace('1', '7'))
  const damaged = await parley(fresh, ['restore', place, '--merge'])
  expect([damaged.code, damaged.err]).toEqual([2, expect.stringContaining('Nothing was restored')])

  // A manifest that names a file elsewhere writes nothing there.
  const manifest = await store.read('half/manifest.json')
  await store.write('half/manifest.json', manifest.replace('"documents-1.jsonl"', '"../outside.jsonl"'))
  const outside = await parley(fresh, ['restore', place, '--merge'])
  expect([outside.code, outside.err]).toEqual([2, expect.stringContaining('names a file that no backup has')])
  expect(existsSync(join(folder, 'outside.jsonl'))).toBe(false)
})

test('credentials come from the environment and are never printed', async () => {
  const place = `r2://${BUCKET}/refused`
  const wrong = { AWS_SECRET_ACCESS_KEY: 'a-wrong-secret-of-the-test' }
  const refused = await parley(old, ['backup', place], wrong)
  expect(refused.code).toBe(4)
  const restore = await parley(old, ['restore', place], { AWS_ACCESS_KEY_ID: 'another-id' })
  expect(restore.code).toBe(4)
  const none = await parley(old, ['backup', place], { AWS_ACCESS_KEY_ID: '' })
  expect([none.code, none.err]).toEqual([2, expect.stringContaining('AWS_ACCESS_KEY_ID')])
  const gone = await parley(old, ['backup', 'r2://another-bucket/x'])
  expect([gone.code, gone.err]).toEqual([5, expect.stringContaining('wrangler r2 bucket create')])
  const elsewhere = await parley(old, ['backup', 's3://backups/x'])
  expect([elsewhere.code, elsewhere.err]).toEqual([2, expect.stringContaining('r2://BUCKET/')])
  for (const { out, err } of [refused, restore, none, gone, elsewhere]) {
    for (const secret of [
      'a-wrong-secret-of-the-test',
      store.secretAccessKey,
      'StringToSign',
      'Signature=',
    ]) {
      expect(out + err).not.toContain(secret)
    }
  }
})

test('a large file goes up in parts, and comes down as it was', async () => {
  // R2 takes parts of 5 MiB and more.
  const bytes = randomBytes((11 << 20) + 7)
  const [file, back] = [join(folder, 'large.bin'), join(folder, 'back.bin')]
  writeFileSync(file, bytes)
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  store.calls.length = 0
  const bucket = new Bucket(`r2://${BUCKET}/large`, env(), 5 << 20)
  await bucket.upload('large.bin', file, sha256)
  expect(store.calls.filter((made) => made.startsWith('PUT')).length).toBe(3)
  expect(await bucket.find('large.bin')).toEqual({ bytes: bytes.length, sha256 })
  await bucket.download('large.bin', back)
  expect(createHash('sha256').update(readFileSync(back)).digest('hex')).toBe(sha256)
  expect(await bucket.find('other.bin')).toBeUndefined()
  writeFileSync(file, '')
  const nothing = createHash('sha256').digest('hex')
  await bucket.upload('empty.bin', file, nothing)
  expect(await bucket.find('empty.bin')).toEqual({ bytes: 0, sha256: nothing })
})
