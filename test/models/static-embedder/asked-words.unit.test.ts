/** The words of a question as a reader sees them. */
import { expect, it } from 'vitest'
import { wordsToRead } from '../../../src/models/static-embedder/reader'

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

it('puts a word together that has a character twice, and marks that a reader leaves out', () => {
  expect(said('サーバー設定', { サ: 1, ー: 1, バ: 1, 設: 2, 定: 2 })).toEqual([
    ['サーハー', 3],
    ['設', 2],
    ['定', 2],
  ])
})

it('leaves words as they are that both have, and corrections that the question lacks', () => {
  expect(said('sharks in the rief', { sharks: 2, reef: 3 })).toEqual([
    ['sharks', 2],
    ['reef', 3],
  ])
  expect(said('', {})).toEqual([])
})
