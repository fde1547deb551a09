import { describe, expect, it } from 'vitest'
import { type Dictionary, respelled } from '../../src/models/spelling'
import { wordsOf } from '../../src/models/words'

const language = new Map(['history', 'hello', 'random', 'story', 'weeks', 'barley'].map((word) => [word, 1]))
const documents = ['parley', 'kept', 'histories', 'keys', 'how'].flatMap((word) => wordsOf(word))
const dictionary: Dictionary = {
  language,
  has: ({ stem }) => documents.some((word) => word.stem === stem),
  like: () => documents.map(({ folded }) => folded),
}

describe('a misspelled question', () => {
  it.each([
    ['how long is histroy kept', 'how long is history kept'],
    ['who wrote parlry', 'who wrote parley'],
    ['a radom answer', 'a random answer'],
    ['Helllo', 'hello'],
    ['the scoped kyes', 'the scoped keys'],
    ['`npm rando` shows the rando', '`npm random` shows the random'],
    ['histor histo', 'history histo'],
  ])('%s becomes: %s', async (asked, meant) => {
    expect(await respelled(asked, dictionary)).toBe(meant)
  })

  it('has eight words looked up at most', async () => {
    let lookedUp = 0
    const like = () => {
      lookedUp += 1
      return []
    }
    const asked = Array.from({ length: 500 }, (_, at) => `zz${'qwertyuiop'[at % 10]}x`).join(' ')
    expect(await respelled(asked, { ...dictionary, like })).toBe(asked)
    expect(lookedUp).toBe(8)
  })

  it.each([
    ['a word that the documents have', 'What is Parley?'],
    ['another form of one', 'the history of keys and histories'],
    ['a word of the language', 'a story of weeks'],
    ['a name in code', 'radOm kye_s HISTROY r2d2'],
    ['a name that no document has', 'ask Radom about it'],
    ['a short word', 'kex'],
    ['a word with two slips', 'how long is hsitroy kept'],
    ['a word of another script', 'расписание'],
  ])('stays with %s', async (_, asked) => {
    expect(await respelled(asked, dictionary)).toBe(asked)
  })
})
