/** Collections in a cluster, in the console: connecting one, its nodes, and what a trace says of it. */
import { expect, test } from 'vitest'
import { collection, found, QUESTION, sampleServer, search, traced, withConversation } from './sample'
import { type FakeServer, failure, reply } from './server'
import {
  address,
  choose,
  click,
  expectSound,
  openTab,
  pressEscape,
  screen,
  shows,
  type,
  waitFor,
  within,
} from './tab'

const NODES = ['https://one.example', 'https://two.example']
const LINKED = collection('linked', ['title', 'overview'], {
  num_documents: 5,
  engine: { type: 'typesense', nodes: NODES, collection: 'shows' },
})

const nodes = (...faults: (string | undefined)[]) => ({
  nodes: NODES.map((url, at) => ({
    url,
    answers: faults[at] === undefined,
    took_ms: 7,
    ...(faults[at] !== undefined && { error: faults[at] }),
  })),
})

const linkedServer = (): FakeServer =>
  sampleServer()
    .on('GET /collections/linked', LINKED)
    .on('GET /collections/linked/documents/search', found([], { out_of: 5 }))
    .on('GET /collections/linked/nodes', nodes())

/** The form, once it is loaded. */
async function form() {
  await screen.findByLabelText('Engine')
  return within(await screen.findByRole('dialog', { name: 'Connect a cluster' }))
}

test('are connected again with other nodes and credentials, which are typed anew', async () => {
  const server = linkedServer().on('PATCH /collections/{name}', () => LINKED)
  await openTab(server, '/collections/linked')
  await click(await screen.findByRole('button', { name: 'Change nodes and credentials' }))
  await screen.findByLabelText('Engine')
  const dialog = within(await screen.findByRole('dialog', { name: 'Connect linked again' }))
  expect(dialog.getByLabelText<HTMLTextAreaElement>('Nodes').value).toBe(NODES.join('\n'))
  await type(dialog.getByLabelText('API key'), 'a new key')
  await expectSound('edit a cluster')
  await click(dialog.getByRole('button', { name: 'Connect' }))
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull())
  expect(server.askedFor('PATCH /collections/{name}').map(({ body }) => body)).toEqual([
    {
      engine: { type: 'typesense', credentials: { api_key: 'a new key' }, nodes: NODES, collection: 'shows' },
    },
  ])
})

test('are connected by a form, which stays with what was typed where the cluster refuses the key', async () => {
  const refusal = 'The Typesense cluster refuses the credentials.'
  const server = linkedServer().on('POST /collections', ({ body }) =>
    body.engine.credentials.api_key === 'right'
      ? reply(201, LINKED)
      : failure(400, refusal, 'Connect again with a key that may read it.'),
  )
  await openTab(server, '/collections')
  await click(await screen.findByRole('link', { name: 'Connect a cluster' }))
  const dialog = await form()
  await type(dialog.getByLabelText('Name in Parley'), 'linked')
  await type(dialog.getByLabelText('Nodes'), NODES.join('\n'))
  await type(dialog.getByLabelText('Collection there'), 'shows')
  await type(dialog.getByLabelText('API key'), 'wrong')
  await expectSound('form')
  await click(dialog.getByRole('button', { name: 'Connect' }))
  await shows(`${refusal} Connect again with a key that may read it.`, 'dialog [role=alert]')
  expect(screen.getByRole('alert').textContent).not.toContain('Try again in a moment')
  await expectSound('refused')
  await type(dialog.getByLabelText('API key'), 'right')
  await click(dialog.getByRole('button', { name: 'Connect' }))
  await shows('linked is connected. The cluster has 5 documents there, with 2 fields.', 'dialog')
  expect(server.askedFor('POST /collections').at(-1)?.body).toEqual({
    name: 'linked',
    engine: { type: 'typesense', credentials: { api_key: 'right' }, nodes: NODES, collection: 'shows' },
  })
  dialog.getByRole('rowheader', { name: 'overview' })
  await expectSound('connected')
  expect(document.body.innerHTML).not.toContain('right')
  await click(dialog.getByRole('link', { name: 'Search linked' }))
  await shows('Lives in Typesense as shows, at https://one.example, https://two.example.')
  await click(await screen.findByText('All 2 nodes answer'))
  server.on('GET /collections/linked/nodes', nodes(undefined, 'it could not be reached'))
  await click(screen.getByRole('button', { name: 'Ask again' }))
  await shows('1 of 2 nodes does not answer')
  await shows('it could not be reached', '.nodes .bad')
  await expectSound('nodes')
})

test('ask for what each engine needs', async () => {
  await openTab(sampleServer(), '/collections?connect=1')
  const dialog = await form()
  await choose(dialog.getByLabelText('Engine'), 'OpenSearch or Elasticsearch')
  await dialog.findByLabelText('Index there')
  dialog.getByLabelText('Password')
  await choose(dialog.getByLabelText('Credentials'), 'None')
  await waitFor(() => expect(dialog.queryByLabelText('Password')).toBe(null))
  await expectSound('opensearch')
  await choose(dialog.getByLabelText('Engine'), 'Cloudflare AI Search')
  await dialog.findByLabelText('Account ID')
  dialog.getByLabelText('Instance there')
  expect(dialog.queryByLabelText('Nodes')).toBe(null)
  await expectSound('ai-search')
  pressEscape()
  await waitFor(() => expect(screen.queryByRole('dialog')).toBe(null))
  expect(address()).toBe('/collections')
})

test('show their nodes while none answers', async () => {
  const down = 'it could not be reached'
  const server = linkedServer()
    .on('GET /collections/linked', () => failure(503, `The Typesense cluster does not answer (${down}).`))
    .on('GET /collections/linked/nodes', nodes(down, down))
  await openTab(server, '/collections/linked')
  await shows('2 of 2 nodes do not answer')
  await shows(down, '.nodes .bad')
})

test('say where they live, and what cannot be done there', async () => {
  const server = linkedServer()
    .on(
      'GET /collections/searched',
      collection('searched', ['text'], { engine: { type: 'ai-search', instance: 'i', account_id: 'a' } }),
    )
    .on('GET /collections/searched/nodes', { nodes: [] })
  await openTab(server, '/collections/linked')
  await shows('Lives in Typesense as shows')
  expect(screen.getAllByRole('link', { name: 'Import files' })).toHaveLength(1)
  await openTab(server, '/collections/searched')
  await shows('Lives in AI Search as i')
  expect(screen.queryByRole('link', { name: 'Import files' })).toBe(null)
  expect(screen.queryByRole('link', { name: 'Documents' })).toBe(null)
  // It answers no search without words: none is asked.
  await screen.findByRole('heading', { name: 'Type what you look for' })
  expect(server.askedFor('GET /collections/searched/documents/search')).toEqual([])
})

test('are named in the trace of an answer, with their time', async () => {
  const searches = [search('linked', {}, { engine: 'typesense', took: 45 })]
  const server = withConversation(sampleServer(), 'c-1', { traces: [traced(1, QUESTION, { searches })] })
  await openTab(server, 'c-1')
  await shows('1 hit · Typesense · 45 ms', '[aria-label="Why this answer?"]')
  await expectSound('trace')
})
