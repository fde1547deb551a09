/** What an import does with what an earlier one left. */
import { expect, test } from 'vitest'
import { asDocuments } from '../../../scripts/parley/import/documents.mjs'
import {
  type Document,
  marked,
  planImport,
  type Stored,
  whence,
} from '../../../scripts/parley/import/plan.mjs'

/** Documents as one folder has them: their texts by their ids. */
const folder = (texts: Record<string, string>, place?: string): Promise<Document[]> =>
  Promise.all(
    Object.entries(texts).map(([id, text]) =>
      marked({ id, text }, { source: 'docs', ...(place && { place }) }),
    ),
  )

/** What an import of documents leaves. */
const left = (documents: Document[]): Map<string, Stored> =>
  new Map(
    documents.map(({ id, parley_hash: mark }) => {
      const [hash = '', place] = String(mark).split('-')
      return [id, { source: 'docs', hash, ...(place && { place }) }]
    }),
  )

const INDEX = { 'docs/index.md': 'One.' }
const MORE = { 'docs/a.md': 'A.', 'docs/b.md': 'B.' }
const OTHER = { 'docs/index.md': 'Two.' }

test('a document is unchanged wherever it was imported from', async () => {
  const stored = left(await folder({ ...INDEX, ...MORE }, 'here'))
  for (const place of ['here', 'there', undefined]) {
    const plan = planImport(await folder({ ...OTHER, ...MORE }, place), stored)
    expect([plan.changed.map(({ id }) => id), plan.unchanged]).toEqual([['docs/index.md'], 2])
  }
})

test.each([
  ['the same place, with another text', INDEX, 'here', OTHER, 'here', 'here'],
  ['the same place, of which nothing is left', MORE, 'here', OTHER, 'here', 'here'],
  ['another place with one file of the same name', INDEX, 'here', OTHER, 'there', 'other'],
  ['another place without files of the same names', MORE, 'here', OTHER, 'there', 'other'],
  [
    'another place with a few files the same',
    { ...INDEX, ...MORE },
    'here',
    { ...OTHER, 'docs/a.md': 'A.', 'docs/b.md': 'C.' },
    'there',
    'other',
  ],
  [
    'another place with half of the files the same',
    { ...INDEX, 'docs/a.md': 'A.' },
    'here',
    { ...OTHER, 'docs/a.md': 'A.' },
    'there',
    'moved',
  ],
  ['another place, which only adds', INDEX, 'here', { ...INDEX, ...MORE }, 'there', 'here'],
  [
    'a place where none was noted, with half the same',
    { ...INDEX, 'docs/a.md': 'A.' },
    undefined,
    { ...OTHER, 'docs/a.md': 'A.' },
    'there',
    'here',
  ],
  ['a place where none was noted, with nothing the same', MORE, undefined, OTHER, 'there', 'other'],
  ['a website, which has no place', MORE, undefined, OTHER, undefined, 'here'],
  ['a place, of which nothing is stored', {}, undefined, OTHER, 'there', 'here'],
])('an import from %s', async (_, before, from, now, place, expected) => {
  expect(whence('docs', await folder(now, place), left(await folder(before, from)))).toBe(expected)
})

test('pages that share the title of their site are called by their own headings', async () => {
  const articles = ['## Keys', '## Locks', 'Text.'].map((text, at) => ({
    id: `x.example/docs/part-${at}`,
    from: { source: 'x' },
    section: 'docs',
    article: { title: 'Handbook', text },
  }))
  const titles = async (some: typeof articles) =>
    (await asDocuments({ articles: some, rows: [] }, { embedding: 'm' })).documents.map(({ title }) => title)
  expect(await titles(articles)).toEqual(['Keys', 'Locks', 'Part 2'])
  expect(await titles(articles.slice(1))).toEqual(['Handbook', 'Handbook'])
})
