/** How wide the ranges are that a long search reads one after the other. */
import { expect, it } from 'vitest'
import { ranges } from '../../src/search/run/candidates'
import { LongSearches, Pace } from '../../src/search/run/pace'

const FIRST = 16_384
const DOCUMENTS = 60_000

/** The widths of all ranges, where a statement reads as many rows as `rows` says for its width. */
async function widthsWhere(rows: (width: number) => number): Promise<number[]> {
  const ends = [{ low: 1, high: DOCUMENTS }]
  const exec = () => ({ toArray: () => ends, rowsRead: 0 })
  const pace = new Pace(new LongSearches({ ms: 1e9, rows: 1_000, width: 65_536 }))
  const widths: number[] = []
  for await (const { low, high } of ranges({ sql: { exec } as never, pace }, FIRST)) {
    widths.push(high - low + 1)
    pace.countRows(rows(high - low + 1))
  }
  pace.end()
  return widths
}

it('covers every document', async () => {
  const widths = await widthsWhere((width) => width / 4)
  expect(widths.reduce((sum, width) => sum + width, 0)).toBe(DOCUMENTS)
})

it('narrows ranges of documents that take longer than a slice', async () => {
  const widths = await widthsWhere((width) => width / 4)
  expect(Math.min(...widths.slice(1, -1))).toBeLessThan(5_000)
})

it('does not narrow them where a statement takes as long for few documents', async () => {
  const widths = await widthsWhere(() => 5_000)
  expect(widths.length).toBeLessThan(10)
  expect(widths.slice(2, -1).every((width) => width >= FIRST)).toBe(true)
})

it.each([0.2, 0.4, 0.6, 0.8])(
  'pays for statements no more than for documents, where %d of the first range is the statement',
  async (part) => {
    const documents = (width: number) => ((1 - part) * 10_000 * width) / FIRST
    const widths = await widthsWhere((width) => part * 10_000 + documents(width))
    const cost = widths.reduce((sum, width) => sum + part * 10_000 + documents(width), 0)
    // The first two ranges show what costs so much.
    expect(cost).toBeLessThan(2 * documents(DOCUMENTS) + (DOCUMENTS / FIRST + 3) * part * 10_000)
  },
)
