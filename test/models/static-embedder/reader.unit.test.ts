/** A reader of passages: what it finds in the best one of a document, and that what it keeps changes nothing. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PassageReader, type Written } from '../../../src/models/static-embedder/reader'
import { readTable } from './read-table'

const table = readTable()

const asked = (text: string, words = text.toLowerCase().split(/\W+/)) => ({
  text,
  words: words.filter((word) => word !== '').map((word) => ({ word, says: 1 })),
})

const read = (question: string, text: string, names = '') =>
  new PassageReader(table).ask(asked(question))({ names, text })

const paragraph = (about: string) =>
  Array.from({ length: 20 }, (_, at) => `The ${about} has its own rule number ${at}.`).join(' ')

const ANSWER = '## Cookies\n\nCookies are deleted with deleteCookie, which takes the name of the cookie.'

describe('a reader', () => {
  it('finds the one passage of a long text that is about the question', () => {
    const long = [paragraph('router'), paragraph('server'), ANSWER, `## Logs\n\n${paragraph('logger')}`].join(
      '\n\n',
    )
    const without = [paragraph('router'), paragraph('server'), paragraph('logger')].join('\n\n')
    const question = 'remove a cookie'
    expect(read(question, long).likeness).toBeGreaterThan(read(question, without).likeness + 0.2)
    expect(read(question, long).words).toBeGreaterThan(read(question, without).words + 0.2)
  })

  it('takes a word of nearly the same meaning for a part of the one that was asked for', () => {
    const same = read('doctor', 'A doctor came.').words
    const alike = read('doctor', 'A physician came.').words
    const other = read('doctor', 'A carpet came.').words
    expect(same).toBe(1)
    expect(alike).toBeLessThan(same)
    expect(alike).toBeGreaterThan(other + 0.3)
  })

  it('knows a word by its stem', () => {
    const whole = read('deleting', 'Deleting it.').words
    expect(whole).toBeGreaterThan(0)
    expect(read('deleting', 'It deletes.').words).toBe(whole)
  })

  it('does not lose a heading beside a long passage', () => {
    const under = (heading: string) => `## ${heading}\n\n${paragraph('option')}`
    const question = 'How do I delete a cookie?'
    expect(read(question, under('Deleting cookies')).likeness).toBeGreaterThan(
      read(question, under('More options')).likeness + 0.2,
    )
    expect(read(question, paragraph('option'), 'Deleting cookies').likeness).toBeGreaterThan(
      read(question, paragraph('option'), 'More options').likeness + 0.2,
    )
  })

  it('counts neighbouring words of the question that are near each other', () => {
    expect(read('health plan costs', 'The health plan costs little.').pairs).toBe(1)
    expect(read('health plan costs', 'Costs of a plan for good health.').pairs).toBe(1)
    const apart = `Health ${'matters more than anything else '.repeat(10)} plan`
    expect(read('health plan', apart).pairs).toBe(0)
    expect(read('health', 'health').pairs).toBe(0)
  })

  it('lets common words of English count for less than telling ones', () => {
    const question = 'need deductible'
    expect(read(question, 'The deductible').words).toBeGreaterThan(read(question, 'You need it').words)
  })

  it('finds words of scripts whose letters it takes apart', () => {
    const asks = (text: string, words: string[]) =>
      new PassageReader(table).ask(asked(text, words))({ names: '', text })
    expect(asks('서버 설정', ['서버', '설정'])).toMatchObject({ words: 0.5, pairs: 1 })
    expect(asks('データ', [...'データ']).words).toBe(0.5)
  })

  it("does not trust its table with another language's words", () => {
    const text = 'Die Kündigung wird zum Ende des Monats wirksam. Der Vertrag endet dann.'
    expect(read('Wann endet der Vertrag', text).likeness).toBe(0)
    expect(read('Vertrag beenden', 'Den Vertrag beenden.').words).toBeCloseTo(0.5)
    expect(read('contract', 'The contract ends.').words).toBeCloseTo(1)
  })

  it('finds what the index has as one word', () => {
    expect(read('Wi-Fi', 'There is Wi-Fi in the hall.', '').words).toBeCloseTo(1)
    expect(
      new PassageReader(table).ask(asked('Wi-Fi', ['wifi']))({ names: '', text: 'The Wi-Fi.' }).words,
    ).toBeGreaterThan(0.9)
  })

  it('reads a document that is nothing but names', () => {
    expect(read('sharks', '', 'Sharks').words).toBe(1)
    expect(read('sharks', '', 'Sharks').likeness).toBeGreaterThan(0.8)
  })

  it('stays within its bounds, whatever it is given', () => {
    const reader = new PassageReader(table)
    const text = fc.string({ unit: 'binary', maxLength: 300 })
    fc.assert(
      fc.property(text, fc.array(text, { maxLength: 50 }), text, text, (question, words, names, body) => {
        const { likeness, words: said, pairs } = reader.ask(asked(question, words))({ names, text: body })
        expect(likeness).toBeGreaterThanOrEqual(-1.001)
        expect(likeness).toBeLessThanOrEqual(1.001)
        for (const part of [said, pairs]) {
          expect(part).toBeGreaterThanOrEqual(0)
          expect(part).toBeLessThanOrEqual(1.001)
        }
      }),
    )
  })

  it('reads the same with what it has kept, also when that has grown too large and is forgotten', () => {
    const reader = new PassageReader(table)
    const question = asked('Where do the sharks of the north reef sleep?')
    const one = reader.ask(question)
    // It shares words with the first one, and with them what was found out about them.
    const other = reader.ask(asked('Do sharks sleep?'))
    const document: Written = { names: 'Sharks', text: `${ANSWER}\n\nThe sharks sleep on the north reef.` }
    const first = one(document)
    other(document)
    for (let at = 0; at < 12; at++) {
      const words = Array.from({ length: 3_000 }, (_, word) => `w${at}x${word}`).join(' ')
      one({ names: '', text: words })
    }
    expect(one(document)).toEqual(first)
    expect(other(document)).toEqual(read('Do sharks sleep?', document.text, document.names))
    expect(reader.ask(question)(document)).toEqual(first)
    expect(new PassageReader(table).ask(question)(document)).toEqual(first)
  })
  it('reads for several questions with the same words as each would be read alone', () => {
    const vocabulary = [
      'sharks',
      'shark',
      'physician',
      'doctor',
      'sleep',
      'reef',
      'cookie',
      'deletes',
      'the',
      '-',
    ]
    const text = fc.array(fc.constantFrom(...vocabulary), { minLength: 1, maxLength: 6 })
    const reader = new PassageReader(table)
    fc.assert(
      fc.property(fc.array(text, { minLength: 2, maxLength: 4 }), fc.array(text), (questions, documents) => {
        const asks = questions.map((words) => reader.ask(asked(words.join(' '))))
        for (const words of documents) {
          const document = { names: 'Sleep', text: words.join(' ') }
          for (const [number, ask] of asks.entries())
            expect(ask(document)).toEqual(read(questions[number]!.join(' '), document.text, document.names))
        }
      }),
      { numRuns: 20 },
    )
  })
})
