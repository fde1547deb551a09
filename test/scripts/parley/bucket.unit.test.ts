/** What a bucket says that does not work, in a sentence and not as a fault of the command line. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { Bucket } from '../../../scripts/parley/backup/bucket.mjs'
import { EXIT, Failure } from '../../../scripts/parley/server.mjs'

const bucket = () =>
  new Bucket('r2://backups/monday', {
    AWS_ACCESS_KEY_ID: 'an-id',
    AWS_SECRET_ACCESS_KEY: 'a-secret',
    AWS_ENDPOINT_URL_S3: 'https://store.example.com',
  })

const failureOf = async (work: Promise<unknown>): Promise<Failure> => {
  const error = await work.then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(error).toBeInstanceOf(Failure)
  return error as Failure
}

afterEach(() => {
  vi.unstubAllGlobals()
})

it.each([
  ['a page', '<!DOCTYPE html><p>Is 1 <b'],
  ['text', 'no healthy upstream <'],
  ['nothing', ''],
])('tells the status of an answer that is %s', async (_, body) => {
  vi.stubGlobal('fetch', async () => new Response(body, { status: 403 }))
  const { code, message } = await failureOf(bucket().download('models.jsonl', '/nowhere/x'))
  expect(code).toBe(EXIT.refused)
  expect(message).toBe(
    'r2://backups/monday answered 403. The API token needs Object Read & Write for this bucket.',
  )
})

it('tells of a file that broke off while it came down', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-bucket-'))
  const body = () =>
    new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode('{"id":1}')),
      pull: (controller) => controller.error(new TypeError('terminated')),
    })
  vi.stubGlobal('fetch', async () => new Response(body()))
  try {
    const { code, message } = await failureOf(bucket().download('models.jsonl', join(folder, 'models.jsonl')))
    expect(code).toBe(EXIT.unreachable)
    expect(message).toContain('r2://backups/monday/models.jsonl broke off')
  } finally {
    rmSync(folder, { recursive: true })
  }
})
