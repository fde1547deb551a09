import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Source } from '../../src/models/language-model'
import { byRank } from '../../src/search/merge-lists'
import { documentBudget, fitSources, serialise } from '../../src/turn/prompt'

const source = (id: string, text: string, more = {}): Source => ({
  collection: 'docs',
  document: { id, title: `Title ${id}`, text, ...more },
})

const section = (name: string, length = 40) =>
  `## ${name}\n\n${Array.from({ length }, (_, at) => `${name} says thing number ${at}.`).join(' ')}`

const page = (...names: string[]) => names.map((name) => section(name)).join('\n\n')

const bytes = (sources: Source[]) =>
  new TextEncoder().encode(serialise(sources.map(({ document }) => document))).byteLength

test('what fits goes in whole, and nothing is told', () => {
  const lists = [[source('a', page('Sharks', 'Rays')), source('b', 'Short.')]]
  expect(fitSources(lists, 'Sharks?', 100_000, 'tags')).toEqual({ sources: lists[0], cut: [] })
})

test('documents of different engines are merged by rank, whole or cut', () => {
  const names = (sources: Source[]) => sources.map(({ document }) => document.id)
  const short = [
    [source('a1', 'x'), source('a2', 'x'), source('a3', 'x')],
    [source('b1', 'x')],
    [source('c1', 'x'), source('c2', 'x')],
  ]
  const ranked = ['a1', 'b1', 'c1', 'a2', 'c2', 'a3']
  expect(names(fitSources(short, 'q', 100_000, 'tags', byRank).sources)).toEqual(ranked)
  expect(names(fitSources(short, 'q', 100_000, 'tags').sources)).toEqual(['a1', 'a2', 'a3', 'b1', 'c1', 'c2'])
  const long = short.map((list) =>
    list.map(({ document }) => source(String(document.id), page('Sharks', 'Rays', 'Eels'))),
  )
  const { sources, cut } = fitSources(long, 'Where do sharks live?', 12_288, 'tags', byRank)
  expect(sources.length).toBeGreaterThanOrEqual(4)
  expect(names(sources)).toEqual(ranked.slice(0, sources.length))
  expect(cut.map(({ document_id }) => document_id)).toEqual(ranked)
})

test('a best hit that is too long is answered from by its best passage', () => {
  const names = Array.from({ length: 40 }, (_, at) => `Chapter${at}`)
  const long = source('long', page(...names.slice(0, 20), 'Sharks', ...names.slice(20)))
  const { sources, cut } = fitSources(
    [[long, source('b', 'Rays are flat.')]],
    'What do sharks say?',
    4_096,
    'tags',
  )
  expect(sources.map(({ document }) => document.id)).toEqual(['long', 'b'])
  expect(sources[0]?.document.text).toContain('Sharks says thing number 0.')
  expect(sources[0]?.document.title).toBe('Title long')
  expect(cut).toEqual([{ collection: 'docs', document_id: 'long', passages: expect.any(Number), of: 41 }])
  expect(cut[0]!.passages).toBeGreaterThan(0)
})

test('the first document of each search has a passage, however much the others would say', () => {
  const talkative = ['a', 'b', 'c'].map((id) => [
    source(id, page(...Array.from({ length: 9 }, () => 'Sharks'))),
  ])
  const lists = [...talkative, [source('d', page('Trees', 'Clouds'))]]
  const { sources } = fitSources(lists, 'What do sharks say?', 5_600, 'tags')
  expect(sources.map(({ document }) => document.id)).toEqual(['a', 'b', 'c', 'd'])
})

test('several long documents share the room, the best ones first', () => {
  const lists = [
    Array.from({ length: 10 }, (_, at) => source(`d${at}`, page('Sharks', 'Rays', 'Eels', 'Crabs'))),
  ]
  const { sources, cut } = fitSources(lists, 'Where do sharks live?', 8_192, 'tags')
  expect(sources.length).toBeGreaterThanOrEqual(3)
  expect(sources.map(({ document }) => document.id)).toEqual(
    lists[0]!.slice(0, sources.length).map(({ document }) => document.id),
  )
  for (const { document } of sources) expect(document.text).toContain('Sharks says')
  expect(cut).toHaveLength(10)
})

test('short documents are dropped as Typesense drops them, and it is told', () => {
  const lists = [Array.from({ length: 20 }, (_, at) => source(`d${at}`, 'x'.repeat(300)))]
  const { sources, cut } = fitSources(lists, 'q', 2_048, 'tags')
  expect(sources.map(({ document }) => document.id)).toEqual(
    lists[0]!.slice(0, sources.length).map(({ document }) => document.id),
  )
  expect(cut).toEqual(
    lists[0]!
      .slice(sources.length)
      .map(({ document }) => ({ collection: 'docs', document_id: document.id, passages: 0, of: 1 })),
  )
})

test('a list of paragraphs is a text too', () => {
  const paragraphs = Array.from(
    { length: 80 },
    (_, at) => `Paragraph ${at} is about ${at === 50 ? 'sharks' : 'eels'} and more.`,
  )
  const list: Source = { collection: 'docs', document: { id: 'a', paragraphs } }
  const { sources } = fitSources([[list]], 'sharks', 2_000, 'tags')
  expect(sources[0]?.document.paragraphs).toContain('Paragraph 50 is about sharks')
})

const documents = fc.array(
  fc.record({
    length: fc.oneof(fc.nat(400), fc.nat(20_000)),
    word: fc.constantFrom('shark ', 'ray "eel"\n', '日本語。', '# A\n\n', '```\ncode\n```\n'),
    more: fc.dictionary(fc.string({ minLength: 1, maxLength: 8 }), fc.string({ maxLength: 40 }), {
      maxKeys: 3,
    }),
  }),
  { maxLength: 12 },
)

test('the prompt never exceeds its budget, and every document is in it or told of', () => {
  fc.assert(
    fc.property(documents, fc.integer({ min: 200, max: 20_000 }), (wanted, maxBytes) => {
      const list = wanted.map(({ length, word, more }, at) =>
        source(`d${at}`, word.repeat(Math.ceil(length / word.length)), more),
      )
      const { sources, cut } = fitSources([list], 'shark eel', maxBytes, 'tags')
      if (sources.length > 0)
        expect(bytes(sources)).toBeLessThanOrEqual(documentBudget('shark eel', maxBytes, 'tags'))
      const whole = new Set(sources.filter((each) => list.includes(each)).map(({ document }) => document.id))
      const told = new Set(cut.map(({ document_id }) => document_id))
      for (const { document } of list)
        expect(whole.has(document.id) !== told.has(String(document.id))).toBe(true)
      for (const { passages, of } of cut) expect(passages).toBeLessThanOrEqual(of)
    }),
  )
})
