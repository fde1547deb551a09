/**
 * A PATCH that changes fields of a large collection, with searches beside it, and a server that is killed (SIGKILL) in the middle
 * of it: no search is refused, and no reply takes the documents that are done for all of them.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { KEY } from './harness'
import { OwnParley } from './own-parley'

const COUNT = 6_000
const GENRES = 10

let server: OwnParley

beforeAll(async () => {
  server = new OwnParley()
  await server.boot()
})
afterAll(() => server.remove())

// biome-ignore lint/suspicious/noExplicitAny: replies are checked field by field
async function call(method: string, path: string, body?: string): Promise<{ response: Response; json: any }> {
  const response = await fetch(server.url + path, { method, headers: { 'x-typesense-api-key': KEY }, body })
  const text = await response.text()
  return { response, json: path.includes('/import') ? text : JSON.parse(text) }
}

const changed = (stem: boolean) =>
  JSON.stringify({
    fields: [
      { name: 'title', drop: true },
      { name: 'title', type: 'string', stem },
      { name: 'genre', drop: true },
      { name: 'genre', type: 'string', facet: true },
    ],
  })

const SEARCHES = [
  'q=ships&query_by=title',
  'q=what+are+ships&query_by=title&filter_by=title:number',
  'q=*&filter_by=genre:!=x',
  'q=*&facet_by=genre',
  'q=*&sort_by=_text_match:desc',
]

/** Asks all searches once. All answer, from all documents. */
async function searchAll(): Promise<void> {
  const replies = SEARCHES.map((search) =>
    call('GET', `/collections/books/documents/search?${search}&per_page=0`),
  )
  for (const { response, json } of await Promise.all(replies)) {
    expect([response.status, json.found]).toEqual([200, COUNT])
    for (const { counts } of json.facet_counts) {
      expect(counts.map(({ count }: { count: number }) => count)).toEqual(Array(GENRES).fill(COUNT / GENRES))
    }
  }
}

test('shows all documents at any time', { timeout: 120_000 }, async () => {
  const fields = [
    { name: 'title', type: 'string' },
    { name: 'genre', type: 'string', facet: true },
  ]
  await call('POST', '/collections', JSON.stringify({ name: 'books', fields }))
  const lines = Array.from({ length: COUNT }, (_, n) =>
    JSON.stringify({ title: `ships number ${n}`, genre: `g${n % GENRES}` }),
  )
  await call('POST', '/collections/books/documents/import', lines.join('\n'))
  await searchAll()

  let over = false
  const patched = call('PATCH', '/collections/books', changed(true)).finally(() => {
    over = true
  })
  while (!over) await searchAll()
  expect((await patched).response.status).toBe(200)
  await searchAll()

  const progress = async () => (await call('GET', '/operations/schema_changes')).json[0]?.altered_docs
  const stems = async () => (await call('GET', '/collections/books')).json.fields[0].stem
  let stem = true
  // The change may be over when the kill comes.
  do {
    stem = !stem
    const { life } = server
    const broken = call('PATCH', '/collections/books', changed(stem)).catch((error) =>
      server.requireDead(error, life),
    )
    while ((await progress()) === undefined && (await stems()) !== stem);
    await server.kill()
    await broken
    await server.boot()
  } while ((await progress()) === undefined)
  // The fields are as they were until the change is done, which goes on by itself.
  for (let shown = await stems(); shown !== stem; shown = await stems()) await searchAll()
  await searchAll()
  expect(await progress()).toBeUndefined()
  const { json } = await call('GET', '/collections/books')
  expect(json).toMatchObject({
    num_documents: COUNT,
    fields: [{ name: 'title', stem }, { name: 'genre' }],
  })
})
