import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { batches, splitLines } from '../../../src/api/typesense/documents'
import { gather } from './gather'

async function* cut(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

const split = (text: string, size: number, limit?: number): Promise<(string | undefined)[]> =>
  gather(splitLines(cut(new TextEncoder().encode(text), size), limit))

describe('lines', () => {
  it('come out whole wherever the network cut them', async () => {
    const text = fc.array(fc.string({ unit: fc.constantFrom('a', 'é', '😀', ' ', '\n', '\r\n', '\t', '"') }))
    await fc.assert(
      fc.asyncProperty(text, fc.integer({ min: 1, max: 7 }), async (parts, size) => {
        const whole = parts.join('')
        const expected = whole.split('\n').filter((line) => line.trim() !== '')
        expect(await split(whole, size)).toEqual(expected)
      }),
    )
  })

  it('that are too long come out as nothing, in their place', async () => {
    expect(await split(`a\n${'b'.repeat(100)}\nc`, 8, 10)).toEqual(['a', undefined, 'c'])
    expect(await split('b'.repeat(11), 3, 10)).toEqual([undefined])
    expect(await split('b'.repeat(10), 3, 10)).toEqual(['b'.repeat(10)])
  })
})

describe('batches', () => {
  const batched = (lines: (string | undefined)[], size: { lines: number; characters: number }) =>
    gather(
      batches(
        (async function* () {
          yield* lines
        })(),
        () => size,
      ),
    )

  it('end at either limit', async () => {
    expect(await batched(['aa', 'bb', 'cc', 'dd'], { lines: 3, characters: 100 })).toEqual([
      { lines: ['aa', 'bb', 'cc'] },
      { lines: ['dd'] },
    ])
    expect(await batched(['aa', 'bb', 'cc', 'dd'], { lines: 9, characters: 5 })).toEqual([
      { lines: ['aa', 'bb'] },
      { lines: ['cc', 'dd'] },
    ])
  })

  it('take a line alone that is larger than a batch', async () => {
    expect(await batched(['a', 'b'.repeat(20), 'c'], { lines: 9, characters: 5 })).toEqual([
      { lines: ['a'] },
      { lines: ['b'.repeat(20)] },
      { lines: ['c'] },
    ])
  })

  it('keep a refused line in its place', async () => {
    expect(await batched(['a', undefined, 'c'], { lines: 9, characters: 5 })).toEqual([
      { lines: ['a'] },
      { tooLong: true },
      { lines: ['c'] },
    ])
  })
})
