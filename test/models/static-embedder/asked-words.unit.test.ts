/** The words of a question as a reader sees them. */
import { expect, it } from 'vitest'
import { wordsToRead } from '../../../src/models/static-embedder/asked-words'

const said = (text: string, words: Record<string, number>) =>
  wordsToRead(
    text,
    Object.entries(words).map(([word, says]) => ({ word, says })),
  ).map(({ word, says }) => [word, says])

it('takes words apart that the index has joined', () => {
  expect(said('Does Wi-Fi work?', { wifi: 4, work: 1 })).toEqual([
    ['wi', 2],
    ['fi', 2],
    ['work', 1],
  ])
})

it('puts a word together that the index has by its characters', () => {
  expect(said('メール を送る', { メ: 1, ー: 1, ル: 2, を: 1, 送: 3, る: 1 })).toEqual([
    ['メール', 4],
    ['を', 1],
    ['送', 3],
    ['る', 1],
  ])
})

it('leaves words as they are that both have, and corrections that the question lacks', () => {
  expect(said('sharks in the rief', { sharks: 2, reef: 3 })).toEqual([
    ['sharks', 2],
    ['reef', 3],
  ])
  expect(said('', {})).toEqual([])
})
