import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ChatMessage } from '../../src/models/language-model'
import { arrayBytes, byteLength, fitDocuments, fitHistory, serialise } from '../../src/turn/prompt'

describe('serialise', () => {
  it('writes a line break after every bracket and element, and sorts keys', () => {
    expect(serialise([{ b: 1, a: 'x' }])).toBe('[\n{\n"a": "x",\n"b": 1\n}\n]')
    expect(serialise([])).toBe('[]')
    expect(serialise({})).toBe('{}')
    expect(serialise({ list: [1, [], {}], none: null, left: undefined })).toBe(
      '{\n"list": [\n1,\n[],\n{}\n],\n"none": null\n}',
    )
  })

  it('says the same as JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(serialise(value))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })

  it('orders keys as their UTF-8 bytes', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string({ unit: 'grapheme' }), { minLength: 1 }), (keys) => {
        const written = Object.keys(
          Object.fromEntries(
            serialise(Object.fromEntries(keys.map((key) => [`k${key}`, 0])))
              .split('\n')
              .slice(1, -1)
              .map((line) => [JSON.parse(line.slice(0, line.lastIndexOf(': '))), 0]),
          ),
        )
        const sorted = keys
          .map((key) => `k${key}`)
          .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
        expect(written).toEqual(sorted)
      }),
    )
  })

  it('has the length that is reckoned for arrays', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), (items) => {
        expect(arrayBytes(items.map((item) => byteLength(serialise(item))))).toBe(
          byteLength(serialise(items)),
        )
      }),
    )
  })
})

const documents = fc.array(
  fc.record({ document: fc.dictionary(fc.string({ minLength: 1 }), fc.string(), { maxKeys: 4 }) }),
  { maxLength: 12 },
)

describe('the budget for documents', () => {
  it('keeps whole documents, as many as fit', () => {
    fc.assert(
      fc.property(
        fc.array(documents, { minLength: 1, maxLength: 4 }),
        fc.string(),
        fc.nat(2000),
        (lists, question, spare) => {
          const maxBytes = 30 + byteLength(question) + spare
          const kept = fitDocuments(lists, question, maxBytes, 'tags')
          const all = lists.flat()
          expect(kept.every((item) => all.includes(item))).toBe(true)
          const bytes = byteLength(serialise(kept.map(({ document }) => document)))
          if (kept.length > 0) expect(bytes).toBeLessThanOrEqual(spare)
        },
      ),
    )
  })

  it('keeps the longest beginning of a single search that fits', () => {
    fc.assert(
      fc.property(documents, fc.nat(400), (list, spare) => {
        const kept = fitDocuments([list], '', 30 + spare, 'tags')
        expect(kept).toEqual(list.slice(0, kept.length))
        const oneMore = list.slice(0, kept.length + 1).map(({ document }) => document)
        if (kept.length < list.length) expect(byteLength(serialise(oneMore))).toBeGreaterThan(spare)
      }),
    )
  })

  const sized = (name: string, length: number) => ({ document: { name, text: 'x'.repeat(length) } })
  const names = (kept: { document: { name: string } }[]) => kept.map(({ document }) => document.name)

  it('drops the lowest ranks of a single search', () => {
    const list = [sized('a', 10), sized('b', 1000), sized('c', 10)]
    expect(names(fitDocuments([list], 'q', 30 + 1 + 200, 'tags'))).toEqual(['a'])
  })

  it('drops from the longest of several lists', () => {
    const lists = [
      [sized('a1', 10), sized('a2', 10)],
      [sized('b1', 10), sized('b2', 10), sized('b3', 10), sized('b4', 10)],
    ]
    const three = arrayBytes(Array(4).fill(byteLength(serialise(sized('a1', 10).document))))
    expect(names(fitDocuments(lists, '', 30 + three, 'tags'))).toEqual(['a1', 'a2', 'b1', 'b2'])
  })

  it('ends with nothing when nothing fits', () => {
    expect(fitDocuments([[sized('a', 10)], [sized('b', 10)]], 'hello', 35, 'tags')).toEqual([])
  })

  it.each([
    ['tags', 34, 30],
    ['context', 230, 226],
  ] as const)('refuses a question beyond the minimum: %s', (family, maxBytes, minimum) => {
    expect(() => fitDocuments([[]], 'hello', maxBytes, family)).toThrow(
      `\`max_bytes\` of the conversation model is less than the minimum required bytes(${minimum}).`,
    )
    expect(fitDocuments([[]], 'hello', maxBytes + 1, family)).toEqual([])
  })
})

describe('the budget for history', () => {
  const said: ChatMessage[] = [
    { role: 'user', content: 'first' },
    { role: 'assistant', content: 'second' },
    { role: 'user', content: 'third' },
  ]

  it('drops the oldest messages first, one at a time', () => {
    const two = byteLength(serialise([{ assistant: 'second' }, { user: 'third' }]))
    expect(fitHistory(said, 'ü', 204 + 2 + two, 'tags', 'openai')).toEqual(said.slice(1))
    expect(fitHistory(said, 'ü', 204 + 2 + two - 1, 'tags', 'openai')).toEqual(said.slice(2))
    expect(fitHistory(said, 'ü', 204 + 2 + 1, 'tags', 'openai')).toEqual([])
  })

  it('refuses what cannot fit, in the words of the provider', () => {
    const few = 'Max bytes is not enough to generate standalone question.'
    expect(() => fitHistory(said, 'q', 204, 'tags', 'openai')).toThrow(few)
    expect(() => fitHistory(said, 'q', 232, 'context', 'cloudflare')).toThrow(few)
    expect(() => fitHistory(said, 'q', 205, 'tags', 'openai')).toThrow('Limit must be positive integer')
    expect(() => fitHistory(said, 'q', 205, 'tags', 'azure')).toThrow('Limit must be positive integer')
    expect(() => fitHistory(said, 'q', 205, 'tags', 'vllm')).toThrow('Conversation history is not valid')
  })
})
