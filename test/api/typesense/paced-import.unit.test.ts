/** What an import reads without making a document of it lets others in all the same. */
import { describe, expect, it, vi } from 'vitest'
import { importResults, LINE_LIMIT, splitLines } from '../../../src/api/typesense/documents'
import type { ImportOptions } from '../../../src/search/types'

const OPTIONS: ImportOptions = { action: 'create', returnDocument: false, returnId: false }

const NOWHERE = {
  importLines: async (lines: string[]) => ({
    ok: true as const,
    value: { results: lines.map(() => '{"success":true}').join('\n'), busy: false },
  }),
}

/** A body that is there at once, as one from a fast client is. */
async function* repeated(text: string, count: number, last = ''): AsyncGenerator<Uint8Array> {
  const piece = new TextEncoder().encode(text)
  for (let n = 0; n < count; n++) yield piece
  yield new TextEncoder().encode(last)
}

/** Runs an import. @returns its result lines, and how often a timer got in between */
async function run(body: AsyncIterable<Uint8Array>): Promise<{ results: string[]; turns: number }> {
  let turns = 0
  let over = false
  const others = (): void => {
    turns++
    if (!over) setTimeout(others, 0)
  }
  setTimeout(others, 0)
  const results: string[] = []
  for await (const piece of importResults(NOWHERE, body, OPTIONS))
    results.push(...piece.split('\n').filter(Boolean))
  over = true
  return { results, turns }
}

describe('an import', () => {
  it('of blank lines pauses by their bytes alone, as there can be hundreds of millions', async () => {
    const { results, turns } = await run(repeated('\n'.repeat(65_536), 640, '{"id":"1"}'))
    expect(results).toEqual(['{"success":true}'])
    expect(turns).toBeGreaterThan(60)
    expect(turns).toBeLessThan(200)
  })

  it('of one piece with very many lines pauses within it', async () => {
    expect((await run(repeated('\u00a0\n'.repeat(1_000_000), 1))).turns).toBeGreaterThan(50)
  })

  it('of a line that does not end pauses by its bytes, and refuses it', async () => {
    const { results, turns } = await run(repeated('x'.repeat(65_536), 640, '\n{"id":"1"}'))
    expect(turns).toBeGreaterThan(60)
    expect(JSON.parse(results[0]!)).toEqual({
      success: false,
      code: 413,
      error: `Document exceeds the maximum of ${LINE_LIMIT} characters.`,
    })
    expect(results.slice(1)).toEqual(['{"success":true}'])
  })

  it('of a line that does not end makes no text of what is past the limit', async () => {
    const decode = vi.spyOn(TextDecoder.prototype, 'decode')
    let decoded = 0
    try {
      const lines: (string | undefined)[] = []
      for await (const line of splitLines(repeated('ü'.repeat(32_768), 640, '\nüb\n'))) lines.push(line)
      expect(lines).toEqual([undefined, 'üb'])
      for (const [bytes] of decode.mock.calls) decoded += bytes?.byteLength ?? 0
    } finally {
      decode.mockRestore()
    }
    expect(decoded).toBeLessThan(2 * LINE_LIMIT + 100_000)
  })
})
