/** An answer that is not right, in the console: what should have answered, what is changed for it, and the new answer beside the old one. */
import { expect, test } from 'vitest'
import {
  ANSWER,
  collection,
  DOCS,
  DOCUMENT,
  found,
  hit,
  made,
  QUESTION,
  sampleServer,
  search,
  summary,
  traced,
  turn,
  withConversation,
} from './sample'
import { failure } from './server'
import { address, click, expectSound, openTab, screen, shows, texts, type, waitFor, within } from './tab'

const KEYS = { id: 'keys', heading: 'How are keys kept?', text: 'As hashes.', section: 'keys' }
const RATED = { rating: 'down', comment: 'Not that.', own: false, created_at: 1, updated_at: 1 }

/** A conversation whose first answer cites a document, while another one should have answered. */
const server = (more: object = {}) =>
  withConversation(sampleServer(), 'c-1', {
    turns: [
      turn(1, 'How do I purge it?', { standalone: QUESTION, warned: true, feedback: [RATED], ...more }),
    ],
    traces: [
      traced(1, QUESTION, {
        standalone: QUESTION,
        searches: [
          search('docs', { fusion: 'score', filter_by: 'section:=conversations', query_by: 'text' }),
        ],
      }),
    ],
  }).on('GET /collections/docs/documents/search', found([hit(DOCUMENT), hit(KEYS)]))

const step = (name: string) =>
  within(screen.getByRole('heading', { name: new RegExp(`^${name}`) }).closest('li')!)

/** Chooses the document that should have answered. */
async function choose() {
  const result = await screen.findByRole('button', { name: KEYS.heading })
  await click(within(result.closest('li')!).getByRole('button', { name: 'This should have answered' }))
  await screen.findByRole('button', { name: 'Chosen', pressed: true })
}

test('is reached from its conversation, and shown with what was asked, searched, read and said of it', async () => {
  const of = server()
  await openTab(of, '/conversations/read/c-1')
  await click(await screen.findByRole('link', { name: 'Fix this answer' }))
  await screen.findByRole('heading', { name: 'Fix this answer', level: 1 })
  expect(address()).toBe('/fix?a=c-1/1')
  await waitFor(() => expect(texts('.asked-question')).toEqual(['How do I purge it?', QUESTION]))
  await shows('A turn is stored as two documents.', '.prose')
  expect(texts('.step .badge')).toEqual(['with a warning', 'rated bad'])
  step('The answer').getByText('Not that.')
  // What is found is what the turn's own search would find, were it not narrowed.
  await waitFor(() =>
    expect(texts('.result-pick .soft')).toEqual(['The answer cites it', 'The model did not have it']),
  )
  const [asked] = of.askedFor('GET /collections/docs/documents/search')
  expect(Object.fromEntries(asked!.query)).toMatchObject({ q: QUESTION, fusion: 'score', query_by: 'text' })
  expect(asked!.query.has('filter_by')).toBe(false)
  await expectSound('an answer to fix')
})

test('is reached from the chat, beside why it is what it is', async () => {
  await openTab(server(), 'c-1')
  const panel = await screen.findByRole('complementary', { name: 'Why this answer?' })
  await click(await within(panel).findByRole('link', { name: 'Fix this answer' }))
  await screen.findByRole('heading', { name: 'What to change' })
})

test('gets a synonym and a pinned document, and each is taken back', async () => {
  const of = server()
    .on('PUT /collections/docs/synonyms/{id}', ({ body }) => ({ ...body, id: 'a' }))
    .on('DELETE /collections/docs/synonyms/{id}', { id: 'a' })
    .on('PUT /collections/docs/overrides/{id}', ({ body }) => ({ ...body, id: 'a' }))
    .on('DELETE /collections/docs/overrides/{id}', { id: 'a' })
  await openTab(of, '/fix?a=c-1/1')
  await choose()
  const ways = step('What to change')
  // The longest word of the question that the document lacks.
  expect(ways.getByLabelText<HTMLInputElement>('Word of the question').value).toBe('history')
  await type(ways.getByLabelText('Word of the document'), 'keys')
  await click(ways.getByRole('button', { name: 'Add the synonym' }))
  await ways.findByText('“history” and “keys” find each other in docs.')
  await type(ways.getByLabelText('When a question has the words'), 'purge / it')
  await click(ways.getByRole('button', { name: 'Put it first' }))
  await ways.findByText(`“${KEYS.heading}” comes first for “purge / it”.`)
  await expectSound('changed')
  expect(of.askedFor('PUT /collections/docs/synonyms/{id}').map(({ path, body }) => [path, body])).toEqual([
    ['/collections/docs/synonyms/history-keys', { synonyms: ['history', 'keys'] }],
  ])
  const pin = '/collections/docs/overrides/purge%20%2F%20it'
  expect(of.askedFor('PUT /collections/docs/overrides/{id}').map(({ path, body }) => [path, body])).toEqual([
    [pin, { rule: { query: 'purge / it', match: 'contains' }, includes: [{ id: 'keys', position: 1 }] }],
  ])
  await click(ways.getAllByRole('button', { name: 'Undo' })[1]!)
  await waitFor(() => expect(ways.getAllByRole('button', { name: 'Undo' })).toHaveLength(1))
  expect(of.askedFor('DELETE /collections/docs/overrides/{id}').map(({ path }) => path)).toEqual([pin])
})

test('has its document edited, which is undone by what it said before', async () => {
  const of = server().on('PATCH /collections/docs/documents/{id}', ({ body }) => ({ ...KEYS, ...body }))
  await openTab(of, '/fix?a=c-1/1')
  await choose()
  await click(screen.getByRole('button', { name: 'Edit' }))
  const dialog = within(await screen.findByRole('dialog'))
  await type(dialog.getByLabelText('text'), 'As hashes. Purge it with DELETE.')
  await click(dialog.getByRole('button', { name: 'Save' }))
  await click(await screen.findByRole('button', { name: 'Undo' }))
  await waitFor(() => expect(screen.queryByRole('button', { name: 'Undo' })).toBe(null))
  expect(of.askedFor('PATCH /collections/docs/documents/{id}').map(({ body }) => body)).toEqual([
    { text: 'As hashes. Purge it with DELETE.' },
    { text: 'As hashes.' },
  ])
})

test('gets a page of its own, with what the collection asks for, and is asked again as a test', async () => {
  const of = server()
    .on('GET /collections/docs', { ...DOCS, fields: [...DOCS.fields, ...collection('x', ['tags']).fields] })
    .on('POST /collections/docs/documents', ({ body }) => made({ ...body, id: '7' }))
    .on('DELETE /collections/docs/documents/7', { id: '7' })
    .on('POST /conversations', ({ body }) => ({
      conversation_id: 'c-2',
      turn: 1,
      question: body.question,
      answer: ANSWER,
      finish_reason: 'stop',
      citations: [],
      results: [],
    }))
    .on('GET /conversations/c-2', {
      ...summary('c-2'),
      turns: [turn(1, QUESTION, { answer: 'With DELETE.' })],
    })
    .on('GET /conversations/c-2/trace', { id: 'c-2', turns: [traced(1)] })
  await openTab(of, '/fix?a=c-1/1&write=1')
  const dialog = within(await screen.findByRole('dialog'))
  await expectSound('a page to write')
  await type(dialog.getByLabelText('text'), 'With DELETE.')
  await click(dialog.getByRole('button', { name: 'Save' }))
  await screen.findByText(`Wrote “${QUESTION}” into docs.`)
  expect(of.askedFor('POST /collections/docs/documents').map(({ body }) => body)).toEqual([
    { heading: QUESTION, text: 'With DELETE.', section: '', tags: '' },
  ])
  await click(step('Ask again').getByRole('button', { name: 'Ask again' }))
  const now = within(await screen.findByRole('region', { name: 'The answer now' }))
  await now.findByText('With DELETE.')
  within(screen.getByRole('region', { name: 'The answer before' })).getByText('with a warning')
  await waitFor(() => expect(address()).toBe('/fix?a=c-1/1&b=c-2/1'))
  expect(of.askedFor('POST /conversations').map(({ body }) => body)).toEqual([
    { question: QUESTION, model: 'docs', collections: ['docs'], filter_by: 'section:=conversations' },
  ])
  await expectSound('asked again')
  await click(step('What to change').getByRole('button', { name: 'Undo' }))
  await waitFor(() => expect(of.askedFor('DELETE /collections/docs/documents/7')).toHaveLength(1))
})

test('says why a change was refused, and what it lacks', async () => {
  const of = server().on('PUT /collections/docs/synonyms/{id}', () =>
    failure(401, 'Forbidden', 'Use another key.'),
  )
  await openTab(of, '/fix?a=c-1/1')
  await screen.findAllByText('Choose a document above first.')
  await type(await screen.findByLabelText('Word of the question'), 'a')
  await type(screen.getByLabelText('Word of the document'), 'b')
  await click(screen.getByRole('button', { name: 'Add the synonym' }))
  await screen.findByText('Use another key.')
  expect(screen.queryByRole('button', { name: 'Undo' })).toBe(null)
})
