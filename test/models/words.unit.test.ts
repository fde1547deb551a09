/** The words that the built-in models read: a text in ASCII takes a shorter way, with the same words. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { contentStems, isContent, wordsOf } from '../../src/models/words'

const ascii = fc.oneof(
  fc.string({ unit: 'binary-ascii' }),
  fc
    .array(fc.constantFrom('Dogs', "don't", 'e.g', '3.5', 'v1.beta', "'", '.', ' ', '_', '-', 'THE', 'x2'))
    .map((parts) => parts.join('')),
)

describe('the words of a text', () => {
  it('are the same in ASCII as beside a word that is not', () => {
    fc.assert(
      fc.property(ascii, (text) => {
        expect([...wordsOf(text), ...wordsOf('\u00e9t\u00e9')]).toEqual(wordsOf(`${text} \u00e9t\u00e9`))
      }),
    )
  })

  it('have the stems of those that say something', () => {
    fc.assert(
      fc.property(fc.oneof(ascii, fc.string({ unit: 'grapheme' })), (text) => {
        const stems = wordsOf(text).filter(isContent)
        expect([...contentStems(text)]).toEqual([...new Set(stems.map(({ stem }) => stem))])
      }),
    )
    expect([...contentStems("The dogs' owners were running")]).toEqual(['dog', 'owner', 'run'])
  })
})
