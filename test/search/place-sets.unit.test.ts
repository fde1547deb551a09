import { expect, it } from 'vitest'
import { follow } from '../../src/search/text/place-sets'
import type { Places } from '../../src/search/text/word-pages'

/** One document in which a word has these places, and how often they are read. */
function counted(places: number[]): { word: Places; reads: () => number } {
  let reads = 0
  const list = new Proxy(Uint32Array.from(places), {
    get: (target, key) => {
      reads += 1
      return Reflect.get(target, key)
    },
  })
  const word = {
    seqs: Uint32Array.of(1),
    starts: Uint32Array.of(0, places.length),
    places: list,
    columns: 1,
  }
  return { word, reads: () => reads }
}

it('looks for a phrase in a time that grows with the places of its words, and not with their square', () => {
  const size = 20_000
  const even = Array.from({ length: size }, (_, at) => 2 * at)
  const { word, reads } = counted(even)
  expect(follow([word, word], Uint32Array.of(0, 0), 1, false)).toBe(false)
  expect(reads()).toBeLessThan(40 * size)
  const next = counted([...even.slice(0, -1).map((place) => place + 2), 2 * size - 1])
  expect(follow([word, next.word], Uint32Array.of(0, 0), 1, false)).toBe(true)
})
