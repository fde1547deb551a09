import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { maskSecret } from '../../src/lib/mask'
import { Masking, masked } from '../../src/models/connector'
import type { Delta } from '../../src/models/language-model'

/** The text after masking, given in these pieces. */
function shown(pieces: string[], secrets: string[]): string {
  const masking = new Masking(secrets)
  return pieces.map((piece) => masking.add(piece)).join('') + masking.end()
}

const SECRET = 'sk-0123456789'

describe('secrets in a text that comes in pieces', () => {
  test('a secret is masked wherever the pieces part it', () => {
    const text = `My key is ${SECRET}, you know.`
    for (let at = 0; at <= text.length; at++) {
      expect(shown([text.slice(0, at), text.slice(at)], [SECRET])).toBe('My key is sk-01********, you know.')
    }
    expect(shown([...text], [SECRET])).toBe('My key is sk-01********, you know.')
  })

  test('what only begins like one comes whole', () => {
    expect(shown(['sk-01', '23', '! and sk-'], [SECRET])).toBe('sk-0123! and sk-')
  })

  test('however it is cut, the result is that of the whole text', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 4, maxLength: 6 })
    const text = fc.string({ unit: fc.constantFrom('a', 'b', ' '), maxLength: 40 })
    fc.assert(
      fc.property(text, word, fc.array(fc.nat(40), { maxLength: 6 }), (whole, secret, cuts) => {
        const at = [0, ...cuts.map((cut) => Math.min(cut, whole.length)).sort((a, b) => a - b), whole.length]
        const pieces = at.slice(1).map((end, index) => whole.slice(at[index], end))
        expect(shown(pieces, [secret])).toBe(whole.replaceAll(secret, maskSecret(secret)))
      }),
    )
  })

  test('a stream ends with what was held back, before its finish', async () => {
    async function* deltas(): AsyncGenerator<Delta> {
      yield { type: 'text', text: 'It is sk-012' }
      yield { type: 'usage', inputTokens: 1, outputTokens: 2 }
      yield { type: 'text', text: '3456789 or sk-' }
      yield { type: 'finish', reason: 'stop' }
    }
    const seen: Delta[] = []
    for await (const delta of masked(deltas(), [SECRET])) seen.push(delta)
    expect(seen.flatMap((delta) => (delta.type === 'text' ? [delta.text] : [])).join('')).toBe(
      'It is sk-01******** or sk-',
    )
    expect(seen.at(-1)).toEqual({ type: 'finish', reason: 'stop' })
    expect(seen.map(({ type }) => type)).toContain('usage')
  })
})
