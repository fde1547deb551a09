import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { importResults, LINE_LIMIT } from '../../../src/api/typesense/documents'
import { ApiError, type Outcome } from '../../../src/errors'
import type { ImportOptions } from '../../../src/search/types'
import { gather } from './gather'

const OPTIONS: ImportOptions = { action: 'create', returnDocument: false, returnId: false }

async function* bytes(text: string, size = 4096): AsyncGenerator<Uint8Array> {
  const all = new TextEncoder().encode(text)
  for (let at = 0; at < all.length; at += size) yield all.subarray(at, at + size)
}

/** A collection that answers each line with itself. */
function echo(reply?: (lines: string[], call: number) => Outcome<{ results: string; busy: boolean }>) {
  const calls: string[][] = []
  return {
    calls,
    importLines: async (lines: string[]) => {
      calls.push(lines)
      const value = { results: lines.map((line) => JSON.stringify({ line })).join('\n'), busy: false }
      return reply ? reply(lines, calls.length) : { ok: true as const, value }
    },
  }
}

const run = async (collection: ReturnType<typeof echo>, text: string): Promise<string> =>
  (await gather(importResults(collection, bytes(text), OPTIONS))).join('')

describe('an import', () => {
  it('answers every line that is not blank, in order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.string({ unit: fc.constantFrom('x', 'é', ' ') })), async (lines) => {
        const expected = lines.filter((line) => line.trim() !== '')
        const body = await run(echo(), lines.join('\n'))
        const read = body === '' ? [] : body.split('\n').map((line) => JSON.parse(line).line)
        expect(read).toEqual(expected)
      }),
    )
  })

  it('sends large bodies in bounded batches, smaller ones while searches wait', async () => {
    const document = JSON.stringify({ text: 'x'.repeat(1_000) })
    const text = Array(2_000).fill(document).join('\n')
    const idle = echo()
    await run(idle, text)
    const busy = echo((lines) => ({
      ok: true,
      value: { results: lines.map(() => '{}').join('\n'), busy: true },
    }))
    await run(busy, text)
    const largest = (calls: string[][]): number => Math.max(...calls.map((lines) => lines.join('').length))
    expect(idle.calls.flat()).toHaveLength(2_000)
    expect(largest(idle.calls)).toBeLessThanOrEqual(512 * 1024)
    // The first batch, and the one read meanwhile, were on their way before anyone knew.
    expect(largest(busy.calls.slice(2))).toBeLessThanOrEqual(24 * 1024)
    expect(busy.calls.flat()).toHaveLength(2_000)
  })

  it('fails as a whole when its first batch does', async () => {
    const gone = echo(() => ({ ok: false, error: { status: 404, message: 'Collection not found' } }))
    await expect(run(gone, '{}\n{}')).rejects.toThrow('Collection not found')
  })

  it('has a line for every document when a later batch fails', async () => {
    const document = JSON.stringify({ text: 'x'.repeat(400 * 1024) })
    const fails = echo((lines, call) =>
      call === 2
        ? { ok: false, error: { status: 503, message: 'Not Ready or Lagging' } }
        : { ok: true, value: { results: lines.map(() => '{"success":true}').join('\n'), busy: false } },
    )
    const body = await run(fails, [document, document, document].join('\n'))
    expect(body.split('\n')).toEqual([
      '{"success":true}',
      '{"success":false,"error":"Not Ready or Lagging","code":503}',
      '{"success":true}',
    ])
  })

  it('says so when the body breaks off on the way', async () => {
    async function* broken(): AsyncGenerator<Uint8Array> {
      const line = new TextEncoder().encode(`${JSON.stringify('x'.repeat(300 * 1024))}\n`)
      for (let count = 0; count < 3; count++) yield line
      throw new ApiError(400, 'The request body is not valid gzip.')
    }
    const collection = {
      importLines: async () => ({ ok: true as const, value: { results: '{}', busy: false } }),
    }
    const body = (await gather(importResults(collection, broken(), OPTIONS))).join('')
    expect(body.split('\n').at(-1)).toBe(
      '{"success":false,"error":"The request body is not valid gzip.","code":400}',
    )
  })

  it('refuses a line that is too long and goes on', async () => {
    const body = await run(echo(), `a\n${'x'.repeat(LINE_LIMIT + 1)}\nb`)
    const lines = body.split('\n').map((line) => JSON.parse(line))
    expect(lines).toMatchObject([{ line: 'a' }, { success: false, code: 413 }, { line: 'b' }])
  })

  it('has an empty answer to an empty body', async () => {
    expect(await run(echo(), '')).toBe('')
    expect(await run(echo(), '\n \n')).toBe('')
  })

  it('sends a batch while the next is being read', async () => {
    const order: string[] = []
    const line = JSON.stringify('x'.repeat(300 * 1024))
    const collection = {
      importLines: async () => {
        order.push('sent')
        return { ok: true as const, value: { results: '{}', busy: false } }
      },
    }
    async function* body(): AsyncGenerator<Uint8Array> {
      for (const name of ['read 1', 'read 2', 'read 3']) {
        order.push(name)
        yield new TextEncoder().encode(`${line}\n`)
      }
    }
    for await (const _ of importResults(collection, body(), OPTIONS));
    expect(order.indexOf('sent')).toBeLessThan(order.indexOf('read 3'))
    expect(order.filter((step) => step === 'sent')).toHaveLength(3)
  })
})
