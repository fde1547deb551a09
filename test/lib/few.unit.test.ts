import { expect, it, vi } from 'vitest'
import { Gate, mapFew } from '../../src/lib/few'

it('works through items a few at a time, in order', async () => {
  let running = 0
  let most = 0
  const results = await mapFew([5, 1, 4, 2, 3, 0], 2, async (item, index) => {
    most = Math.max(most, ++running)
    await new Promise((resolve) => setTimeout(resolve, item))
    running--
    return item * 10 + index
  })
  expect(results).toEqual([50, 11, 42, 23, 34, 5])
  expect(most).toBe(2)
  expect(await mapFew([], 3, async () => 1)).toEqual([])
})

it('begins nothing more after a failure', async () => {
  const begun: number[] = []
  const work = mapFew([1, 2, 3, 4, 5, 6], 2, async (item) => {
    begun.push(item)
    await new Promise((resolve) => setTimeout(resolve, 1))
    if (item === 2) throw new Error('no')
  })
  await expect(work).rejects.toThrow('no')
  await new Promise((resolve) => setTimeout(resolve, 10))
  expect(begun.length).toBeLessThan(5)
})

it('a gate lets a few through at a time, in order, whatever becomes of them', async () => {
  const gate = new Gate(2)
  const begun: number[] = []
  const ends: (() => void)[] = []
  const passing = [0, 1, 2, 3].map((item) =>
    gate.pass(async () => {
      begun.push(item)
      await new Promise<void>((resolve) => ends.push(resolve))
      if (item === 0) throw new Error('no')
      return item
    }),
  )
  const settled = Promise.allSettled(passing)
  await vi.waitFor(() => expect(begun).toEqual([0, 1]))
  ends[0]!()
  await vi.waitFor(() => expect(begun).toEqual([0, 1, 2]))
  ends[1]!()
  await vi.waitFor(() => expect(begun).toEqual([0, 1, 2, 3]))
  for (const end of ends) end()
  expect((await settled).map(({ status }) => status)).toEqual([
    'rejected',
    'fulfilled',
    'fulfilled',
    'fulfilled',
  ])
})
