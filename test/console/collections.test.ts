/** Collections in the console: search and what it is weighed by, documents, passages, the state of vectors. */
import { expect, test, vi } from 'vitest'
import { assistant, collection, DOCS, DOCUMENT, found, HISTORY, hit, sampleServer } from './sample'
import { type Asked, failure } from './server'
import {
  address,
  choose,
  click,
  expectSound,
  go,
  openTab,
  pressEscape,
  reload,
  screen,
  shows,
  texts,
  type,
  waitFor,
  within,
} from './tab'

const titles = () => texts('.result-title')
const SEARCH = 'GET /collections/docs/documents/search'

test('are listed, where conversations are kept last, and one is deleted', async () => {
  const server = sampleServer().on('DELETE /collections/docs', () => {
    server.on('GET /collections', [HISTORY])
    return DOCS
  })
  await openTab(server, '/collections')
  await waitFor(() => expect(texts('.item-name')).toEqual(['docs', 'docs_history']))
  await expectSound('list')
  await click(screen.getByRole('button', { name: 'Delete the collection docs' }))
  await shows('478 documents and their vectors are deleted for good.', 'dialog')
  await click(screen.getByRole('button', { name: 'Delete the collection' }))
  await waitFor(() => expect(texts('.item-name')).toEqual(['docs_history']))
})

test('are not deleted before it is said what needs them', async () => {
  const server = sampleServer().on('GET /assistants', {
    assistants: [
      assistant('help', { collections: ['docs'] }),
      assistant('other', { model: 'm', collections: ['shop'] }),
    ],
  })
  await openTab(server, '/collections')
  await click(await screen.findByRole('button', { name: 'Delete the collection docs_history' }))
  await shows('2 messages of conversations are deleted for good.', 'dialog')
  await shows('Conversations with docs are kept here. Without it docs and help cannot answer', 'dialog')
  await expectSound('losses')
  await click(screen.getByRole('button', { name: 'Cancel' }))
  await click(screen.getByRole('button', { name: 'Delete the collection docs' }))
  await shows('Searched by help, which will find nothing in it.', 'dialog')
  expect(texts('dialog')[0]).not.toContain('cannot answer')
})

test('are searched by words and meaning, and each hit is explained', async () => {
  const server = sampleServer()
  await openTab(server, '/collections/docs')
  await type(await screen.findByRole('searchbox', { name: 'Search docs' }), 'history')
  await waitFor(() => expect(texts('.result mark')).toEqual(['history']))
  await waitFor(() => expect(address()).toBe('/collections/docs?q=history'))
  expect(texts('.scores')[0]).toMatch(
    /score 0\.900.*keyword match 100% \(1 word matched in text\).*semantic match 70%/,
  )
  const asked = () => Object.fromEntries(server.askedFor(SEARCH).at(-1)?.query ?? [])
  await waitFor(() =>
    expect(asked()).toEqual({
      q: 'history',
      query_by: 'embedding,heading,text,section',
      per_page: '20',
      facet_by: 'section',
      exclude_fields: 'embedding',
    }),
  )
  await click(screen.getByText('About these scores'))
  await shows('as a share of the first hit')
  await expectSound('search')
  await choose(screen.getByLabelText('Search by'), 'Meaning')
  await waitFor(() => expect(server.askedFor(SEARCH).at(-1)?.query.get('query_by')).toBe('embedding'))
  await click(screen.getByRole('button', { name: DOCUMENT.heading }))
  await shows('"section": "conversations"', 'dialog')
  await expectSound('document')
  pressEscape()
  await waitFor(() => expect(screen.queryByRole('dialog')).toBe(null))
})

test('are narrowed by facets and filters, and the address says it all', async () => {
  const server = sampleServer()
  await openTab(server, '/collections/docs?q=history')
  await click(await screen.findByRole('button', { name: /^conversations/ }))
  await screen.findByRole('button', { name: /^conversations/, pressed: true })
  const filter = 'section:=`conversations`'
  expect(address()).toBe(`/collections/docs?q=history&filter=${filter}`)
  await waitFor(() => expect(server.askedFor(SEARCH).at(-1)?.query.get('filter_by')).toBe(filter))
  await reload()
  await screen.findByRole('button', { name: /^conversations/, pressed: true })
  const box = screen.getByRole<HTMLInputElement>('searchbox', { name: 'Search docs' })
  // "Back" and links change what stands in the box.
  go('/collections/docs?q=keys')
  await waitFor(() => expect(box.value).toBe('keys'))
  history.back()
  await waitFor(() => expect(box.value).toBe('history'))
  server.on(SEARCH, () => failure(400, 'Could not find a filter field named `nofield` in the schema.'))
  await type(screen.getByPlaceholderText('Filter, such as year:>2020'), 'nofield:=1')
  await shows('Could not find a filter field named `nofield`', '[role=alert]')
  // Hits of the search before are not those of this one.
  expect(titles()).toEqual([])
})

const WEIGHED = collection('weighed', ['title', 'text'])
const TIDES = { id: 'a', title: 'Tides', text: 'Of the sea' }
const SEA = { id: 'b', title: 'Of the sea', text: 'Tides' }

/** Ranks as the server does: the hit in the heavier field comes first. */
function weigh({ query }: Asked) {
  const fields = query.get('query_by')?.split(',') ?? []
  const weights = query.get('query_by_weights')?.split(',').map(Number) ?? [1, 1]
  const weightOf = (field: string) => (fields.includes(field) ? weights[fields.indexOf(field)]! : 0)
  const hits = [
    hit(TIDES, { field: 'title', snippet: '<mark>Tides</mark>', match: weightOf('title') }),
    hit(SEA, { field: 'text', snippet: '<mark>Tides</mark>', match: weightOf('text') }),
  ]
  return found(
    hits.filter(({ text_match: match }) => match > 0).sort((a, b) => b.text_match - a.text_match),
    {
      out_of: 2,
    },
  )
}

test('weigh their fields in a search, and the address says how', async () => {
  const server = sampleServer()
    .on('GET /collections/weighed', WEIGHED)
    .on('GET /collections/weighed/documents/search', weigh)
  await openTab(server, '/collections/weighed?q=tides')
  await waitFor(() => expect(titles()).toEqual(['Tides', 'Of the sea']))
  await click(screen.getByText('Weights'))
  await type(screen.getByRole('spinbutton', { name: 'text' }), '9')
  await waitFor(() => expect(titles()).toEqual(['Of the sea', 'Tides']))
  expect(address()).toContain('weights=text:9')
  await type(screen.getByRole('spinbutton', { name: 'title' }), '9')
  await type(screen.getByRole('spinbutton', { name: 'text' }), '0')
  await shows('1 hit of 2')
  expect(titles()).toEqual(['Tides'])
  expect(texts('.scores')[0]).toContain('1 word matched in title')
  await expectSound('weights')
  await reload()
  await shows('1 hit of 2')
  expect(screen.getByRole<HTMLInputElement>('spinbutton', { name: 'title' }).value).toBe('9')
  await click(screen.getByRole('button', { name: 'Reset the weights' }))
  await shows('2 hits of 2')
  expect(address()).toBe('/collections/weighed?q=tides')
})

test('weigh meaning against words', async () => {
  const server = sampleServer()
  await openTab(server, '/collections/docs?q=history')
  await click(await screen.findByText('Weights'))
  await choose(screen.getByLabelText('meaning'), '100%')
  await waitFor(() =>
    expect(server.askedFor(SEARCH).at(-1)?.query.get('vector_query')).toBe('embedding:([], alpha: 1)'),
  )
  expect(address()).toContain('alpha=1')
})

test('show their documents page by page, lose one, and show their schema', async () => {
  const all = Array.from({ length: 30 }, (_, at) => ({ id: String(at), title: `Number ${at}` }))
  const paged = () => collection('paged', ['title'], { num_documents: all.length })
  const server = sampleServer()
    .on('GET /collections/paged', paged)
    .on('GET /collections/paged/documents/search', ({ query }) => {
      const at = (Number(query.get('page')) - 1) * 25
      const hits = all.slice(at, at + 25).map((document) => hit(document))
      return found(hits, { found: all.length, out_of: all.length })
    })
    .on('PATCH /collections/paged/documents/{id}', ({ path, body }) =>
      Object.assign(all.find(({ id }) => path.endsWith(`/${id}`))!, body),
    )
    .on('DELETE /collections/paged/documents/{id}', ({ path }) => {
      const at = all.findIndex(({ id }) => path.endsWith(`/${id}`))
      return all.splice(at, 1)[0]
    })
  await openTab(server, '/collections/paged/documents')
  await shows('Page 1 of 2')
  await expectSound('documents')
  await click(screen.getByRole('button', { name: 'Next' }))
  await shows('Page 2 of 2')
  expect(address()).toBe('/collections/paged/documents?page=2')
  await waitFor(() => expect(texts('.row-title')).toHaveLength(5))
  await click(screen.getByText('Number 25', { selector: '.row-title' }))
  // What is wrong in it is mended in its place, and can be undone.
  await click(await screen.findByRole('button', { name: 'Edit' }))
  await type(await screen.findByLabelText('title'), 'Number twenty-five')
  await expectSound('edit a document')
  await click(screen.getByRole('button', { name: 'Save' }))
  await shows('Number twenty-five', '.row-title')
  await click(await screen.findByRole('button', { name: 'Undo' }))
  await shows('Number 25', '.row-title')
  expect(server.askedFor('PATCH /collections/paged/documents/25').map(({ body }) => body)).toEqual([
    { title: 'Number twenty-five' },
    { title: 'Number 25' },
  ])
  await click(await screen.findByRole('button', { name: 'Delete the document' }))
  await click(await screen.findByRole('button', { name: 'Delete for good' }))
  await shows('29 documents')
  expect(texts('.row-title')).not.toContain('Number 25')
  await click(screen.getByRole('link', { name: 'Schema' }))
  await screen.findByRole('rowheader', { name: 'title' })
  await expectSound('schema')
  server.on('PATCH /collections/paged', ({ body }) => body)
  await click(screen.getByRole('button', { name: 'Add a field' }))
  await type(await screen.findByLabelText('JSON'), '{ "name": "year", "type": "int32", "optional": true }')
  await click(screen.getByRole('button', { name: 'Save' }))
  await waitFor(() => expect(screen.queryByRole('dialog')).toBe(null))
  await click(screen.getByRole('button', { name: 'Remove the field title' }))
  await click(await screen.findByRole('button', { name: 'Remove the field' }))
  await waitFor(() => expect(screen.queryByRole('dialog')).toBe(null))
  expect(server.askedFor('PATCH /collections/paged').map(({ body }) => body)).toEqual([
    { fields: [{ name: 'year', type: 'int32', optional: true }] },
    { fields: [{ name: 'title', drop: true }] },
  ])
})

test('say so at a page of documents that is not there', async () => {
  const server = sampleServer()
    .on('GET /collections/few', collection('few'))
    .on('GET /collections/few/documents/search', ({ query }) =>
      found(query.get('page') === '1' ? [hit({ id: 'a', ...{ title: 'One' } })] : [], {
        found: 1,
        out_of: 1,
      }),
    )
  await openTab(server, '/collections/few/documents?page=7')
  await screen.findByRole('heading', { name: 'There is no such page' })
  await click(screen.getByRole('link', { name: 'The first page' }))
  await waitFor(() => expect(texts('.row-title')).toEqual(['One']))
})

const LONG = [
  '# Reefs',
  `Reefs are built by corals. ${'Corals grow slowly and need light. '.repeat(30)}`,
  '## Tides',
  `Tides follow the moon. ${'The moon pulls the sea twice a day. '.repeat(30)}`,
].join('\n\n')

test('show a document in the passages that a model reads of it, and markup as text', async () => {
  const documents = [
    { id: 'reefs', title: '<b>Reefs</b>', text: LONG },
    { id: 'short', title: 'Short', text: 'A line.' },
  ]
  const server = sampleServer()
    .on('GET /collections/long', collection('long', ['title', 'text']))
    .on(
      'GET /collections/long/documents/search',
      found(
        documents.map((document) => hit(document)),
        { out_of: 2 },
      ),
    )
  await openTab(server, '/collections/long/documents')
  await click(await screen.findByText('<b>Reefs</b>'))
  await click(await screen.findByRole('button', { name: 'Passages' }))
  await waitFor(() => expect(texts('.document-passage').length).toBeGreaterThan(1))
  expect(texts('.document-passage')[0]).toMatch(/^1 › ReefsReefs are built by corals/)
  expect(texts('.document-passage').at(-1)).toContain('› Reefs › Tides')
  await expectSound('passages')
  pressEscape()
  await click(screen.getByText('A line.', { selector: '.row-text' }))
  await click(await screen.findByRole('button', { name: 'Passages' }))
  await shows('It has no long text', 'dialog')
  expect(document.querySelector('main :is(img, b)')).toBe(null)
})

test('show what an embedding model refuses, and no more of it once it is mended', async () => {
  const refused = collection('refused', ['heading', 'text', 'embedding'], {
    refused_embeddings: 1,
    embedding_error: 'Document `bad`: This text is not taken',
  })
  const server = sampleServer().on('GET /collections/refused', refused)
  server.on('GET /collections/refused/documents/search', found([hit(DOCUMENT)]))
  await openTab(server, '/collections/refused/documents')
  await shows(
    'Document `bad`: This text is not taken. 1 document can be found by words only.',
    '[role=alert]',
  )
  await shows('1 document refused by the model')
  await expectSound('refused')
  server.on('GET /collections/refused', collection('refused', ['heading', 'text', 'embedding']))
  await reload()
  await shows('words and meaning')
  expect(screen.queryByRole('alert')).toBe(null)
})

test('tell how many vectors are to be made, and look again until they are', async () => {
  const state = (pending: number) =>
    collection('new', ['heading', 'text', 'embedding'], pending > 0 ? { pending_embeddings: pending } : {})
  const server = sampleServer()
    .on('GET /collections/new', state(1_200))
    .on('GET /collections/new/documents/search', found([]))
  // They are looked for every two seconds: here at once.
  const { setInterval: repeat } = window
  const soon = (run: () => void, ms?: number) => repeat(run, ms === 2_000 ? 10 : ms)
  vi.spyOn(window, 'setInterval').mockImplementation(soon as typeof setInterval)
  await openTab(server, '/collections/new')
  await shows('1,200 vectors to make')
  server.on('GET /collections/new', state(0))
  await shows('words and meaning')
})

test('have an address for each of their views, and none besides', async () => {
  await openTab(sampleServer(), '/collections/docs/schema')
  const views = within(await screen.findByRole('navigation', { name: 'Views of the collection' }))
  await waitFor(() =>
    expect(views.getAllByRole('link').map((link) => [link.textContent, link.getAttribute('href')])).toEqual([
      ['Search', '#/collections/docs'],
      ['Documents', '#/collections/docs/documents'],
      ['Schema', '#/collections/docs/schema'],
    ]),
  )
  expect(views.getByRole('link', { current: 'page' }).textContent).toBe('Schema')
  go('/collections/docs/nothing')
  await screen.findByRole('heading', { name: 'There is nothing at this address' })
})
