/** The tokenizer against the reference implementation, whose tokens scripts/embedder/fixtures.py wrote down. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { WordPiece, wordsOf } from '../../../src/models/static-embedder/reader'
import { readVocabulary } from './read-table'
import reference from './reference-tokens.json'

const vocabulary = readVocabulary()
const tokenizer = new WordPiece(vocabulary)

describe('word pieces', () => {
  it.each(reference)('of $text are those of the reference', ({ text, ids }) => {
    expect(tokenizer.encode(wordsOf(text))).toEqual(ids)
  })

  it('make up each word again, or are none at all', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z0-9]{1,30}$/), (word) => {
        const pieces = tokenizer.encode(wordsOf(word)).map((id) => vocabulary[id]!)
        if (pieces.length === 0) return
        expect(pieces.map((piece, index) => (index === 0 ? piece : piece.slice(2))).join('')).toBe(word)
        expect(pieces.slice(1).every((piece) => piece.startsWith('##'))).toBe(true)
      }),
    )
  })

  it('are the same for a text whether it is folded already or not, and whatever it holds', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
        const ids = tokenizer.encode(wordsOf(text))
        expect(ids.every((id) => vocabulary[id] !== undefined)).toBe(true)
        expect(tokenizer.encode(wordsOf(`${text} é`))).toEqual([...ids, ...tokenizer.encode(wordsOf('E'))])
      }),
    )
  })
})
