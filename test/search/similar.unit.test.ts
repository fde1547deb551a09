/** Which words are searched for in place of a mistyped one, and how they are counted. */
import { expect, it } from 'vitest'
import type { SqlFragment } from '../../src/search/fragment'
import { WORDS } from '../../src/search/text/analyzer'
import { similarWords, type Vocabulary } from '../../src/search/text/similar'

const RULES = { maxTypos: 2, minLengthOneTypo: 4, minLengthTwoTypos: 7, withDigits: true, numbers: true }

/** More documents than are ever counted. */
const EVERY = 1_000_000

/** A vocabulary in which each word has so many documents, and what was counted before each turn of other searches. */
function vocabularyWith(documents: ReadonlyMap<string, number>, turns = Number.POSITIVE_INFINITY) {
  const counted = [0]
  const vocabulary: Vocabulary = {
    index: WORDS,
    table: 'terms',
    read: <Row extends object>({ sql, bindings }: SqlFragment): Row[] => {
      if (!sql.includes('MATCH')) return [...documents.keys()].map((term) => ({ term })) as never
      const words = JSON.parse(String(bindings.at(-1))) as string[]
      return words.map((term) => {
        const count = Math.min(documents.get(term)!, Number(/LIMIT (\d+)/.exec(sql)![1]))
        counted[counted.length - 1]! += count
        return { term, documents: count }
      }) as never
    },
    rest: async () => counted.push(0) <= turns,
  }
  return { vocabulary, counted }
}

const ENDINGS = [...'abcdefghijklmnopqrstuvwyz']
const frequent = new Map(
  ENDINGS.flatMap((one) => ENDINGS.map((other): [string, number] => [`wolve${one}${other}`, EVERY])),
)

it('gives other searches a turn while it counts frequent words', async () => {
  const { vocabulary, counted } = vocabularyWith(new Map([...frequent, ['wolveab', 2 * EVERY]]))
  const words = await similarWords(vocabulary, 'wolvexx', false, RULES)
  expect(words).toHaveLength(16)
  expect(Math.max(...counted)).toBeLessThanOrEqual(65_536)
})

it('prefers the words that most documents have', async () => {
  const documents = new Map([...frequent.keys()].map((word, n): [string, number] => [word, 1 + n]))
  const { vocabulary } = vocabularyWith(documents)
  const words = await similarWords(vocabulary, 'wolvexx', false, RULES)
  expect(words).toEqual([...frequent.keys()].slice(-16).reverse())
})

it('takes the most frequent of the words that it has counted when the search has to end', async () => {
  const { vocabulary } = vocabularyWith(frequent, 2)
  expect(await similarWords(vocabulary, 'wolvexx', false, RULES)).toHaveLength(16)
})
