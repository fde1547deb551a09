/** The import of the console, and the first run: from files to a snippet for a page. */
import { fireEvent } from '@testing-library/dom'
import { expect, test } from 'vitest'
import { assistant, collection, key, made, model, sampleServer } from './sample'
import type { FakeServer } from './server'
import { address, click, expectSound, openTab, screen, settled, shows, texts, type, waitFor } from './tab'

const file = (name: string, text: string) => new File([text], name)

/** Chooses files one by one. */
async function chooseFiles(...files: File[]): Promise<void> {
  fireEvent.change(await screen.findByLabelText('Files'), { target: { files } })
}

/** Drags a file over the page, or drops it there. */
async function drag(
  event: 'dragOver' | 'drop',
  files = [file('dropped.md', '# Dropped\n\nA page.')],
): Promise<void> {
  await settled()
  const dataTransfer = { types: ['Files'], items: [], files }
  fireEvent[event](screen.getByRole('main'), { dataTransfer })
}

/** What the server answers to the lines of an import. @param refuses ids, and why */
const imports = (server: FakeServer, refuses: Record<string, string> = {}) => {
  const sent: Record<string, unknown>[] = []
  server.on('POST /collections/{name}/documents/import', ({ body }) => {
    const lines = (typeof body === 'string' ? body : JSON.stringify(body))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    sent.push(...lines)
    const replies = lines.map(({ id }) =>
      refuses[id] === undefined
        ? { success: true, id }
        : { success: false, id, error: refuses[id], code: 400 },
    )
    return new Response(replies.map((reply) => JSON.stringify(reply)).join('\n'))
  })
  return sent
}

/** A server that makes collections. */
function importing(): { server: FakeServer; sent: Record<string, unknown>[] } {
  const server = sampleServer()
  server.on('POST /collections', ({ body }) => {
    const one = collection(body.name, ['title', 'text'])
    server.on(`GET /collections/${body.name}`, one)
    return made(one)
  })
  return { server, sent: imports(server) }
}

test('files are read, shown before they are sent, and make a collection', async () => {
  const { server, sent } = importing()
  await openTab(server, '/import')
  await screen.findByText('Drop a folder or files here')
  await expectSound('import')
  await chooseFiles(file('tides.md', '# Tides\n\nThe moon makes them.'), file('photo.png', 'x'))
  await shows('The collection is made with the fields')
  expect(texts('.sample .row-title')).toEqual(['Tides'])
  await expectSound('preview')
  await type(screen.getByLabelText('Collection'), 'sea')
  await shows('The collection is made with the fields')
  await click(screen.getByRole('button', { name: 'Import' }))
  await shows('1 document imported into sea')
  expect(texts('.faults li')).toEqual(['photo.pngfiles of this kind are not read'])
  expect(server.askedFor('POST /collections').map(({ body }) => body.name)).toEqual(['sea'])
  expect(sent).toMatchObject([{ id: 'tides.md', heading: 'Tides' }])
  expect(screen.getByRole('link', { name: 'Search it' }).getAttribute('href')).toBe('#/collections/sea')
  await expectSound('imported')
})

test('rows are taken, and those that the server refuses are told', async () => {
  const server = sampleServer().on('GET /collections', [collection('rows', ['n'])])
  server.on('GET /collections/rows', collection('rows', ['n']))
  const sent = imports(server, { b: 'Field `n` must be an int32.' })
  await openTab(server, '/import?into=rows')
  await chooseFiles(file('rows.jsonl', '{"id":"a","n":1}\n{"id":"b","n":"none"}\n{"id":"c","n":3}\n'))
  await click(await screen.findByRole('button', { name: 'Import' }))
  await shows('2 documents imported into rows')
  expect(texts('.faults li')).toEqual(['bField `n` must be an int32.'])
  expect(sent).toHaveLength(3)
})

test('an import of which the server takes nothing is no success', async () => {
  const server = sampleServer().on('GET /collections', [collection('rows', ['n'])])
  server.on('GET /collections/rows', collection('rows', ['n']))
  imports(server, { a: 'Field `n` must be an int32.' })
  await openTab(server, '/import?into=rows')
  await chooseFiles(file('rows.jsonl', '{"id":"a","n":"none"}\n'))
  await click(await screen.findByRole('button', { name: 'Import' }))
  await shows('Nothing was imported into rows: the server refused 1 document.', '[role=alert]')
  expect(document.body.textContent).not.toContain('imported into rows.')
})

test('what is there already is not sent again', async () => {
  const { server, sent } = importing()
  await openTab(server, '/import')
  await chooseFiles(file('a.md', '# A'), file('b.md', '# B'))
  await click(await screen.findByRole('button', { name: 'Import' }))
  await shows('2 documents imported into files')
  const fields = ['title', 'text', 'parley_source', 'parley_hash', 'parley_page']
  server
    .on('GET /collections', [collection('files', fields)])
    .on('GET /collections/files/documents/export', ({ query }) => {
      const filter = query.get('filter_by') ?? ''
      const asked = sent.filter(({ parley_source: name }) => filter.includes(`\`${name}\``))
      return new Response(asked.map((each) => JSON.stringify(each)).join('\n'))
    })
  await click(screen.getByRole('button', { name: 'Import more' }))
  await chooseFiles(file('a.md', '# A'), file('b.md', '# B'))
  await shows('there is nothing to import')
  expect(screen.getByRole<HTMLButtonElement>('button', { name: 'Import' }).disabled).toBe(true)
  await click(screen.getByRole('button', { name: 'Choose other files' }))
  await chooseFiles(file('b.md', '# B, again'), file('c.md', '# C'))
  await shows('1 new, 1 changed, 0 unchanged, 0 gone')
})

test('files that cannot be read are named', async () => {
  await openTab(sampleServer(), '/import')
  await chooseFiles(file('photo.png', 'x'))
  await shows('photo.png cannot be read.', '[role=alert]')
  await expectSound('not read')
})

test('an import begins with a file that is dropped on any page, into the collection of that page', async () => {
  await openTab(sampleServer())
  await screen.findByRole('heading', { name: 'Ask your documents', level: 2 })
  await drag('dragOver')
  await shows('Drop a folder or files to import them')
  await drag('drop')
  await shows('The collection is made with')
  expect(texts('.drop-veil')).toEqual([])
  expect(screen.getByLabelText<HTMLInputElement>('Collection').value).toBe('dropped')
  expect(address()).toBe('/import')
  await openTab(sampleServer(), '/collections/docs')
  await screen.findByRole('searchbox', { name: 'Search docs' })
  await drag('drop')
  await waitFor(() => expect(screen.getByLabelText<HTMLInputElement>('Collection').value).toBe('docs'))
  expect(address()).toBe('/import?into=docs')
})

test('the first run leads from files to a snippet', async () => {
  const { server } = importing()
  server.on('GET /collections', []).on('GET /assistants', { assistants: [] })
  server.on('GET /conversations/models', [])
  await openTab(server, '/start')
  await shows('First do step 1.')
  await expectSound('nothing yet')
  await screen.findByRole('link', { name: 'Import files' })
  await drag('drop')
  await shows('The collection is made with')
  await click(screen.getByRole('button', { name: 'Import' }))
  const sea = collection('dropped', ['heading', 'text'])
  server.on('GET /collections', [sea])
  await click(await screen.findByRole('link', { name: 'Go on' }))
  expect(address()).toBe('/start?collection=dropped')
  server
    .on('POST /conversations/models', ({ body }) =>
      made(model(body.id, { history_collection: body.history_collection })),
    )
    .on('PUT /assistants/dropped', ({ body }) => {
      const one = assistant('dropped', body)
      server.on('GET /assistants', { assistants: [one] })
      return one
    })
  await click(await screen.findByRole('button', { name: 'Make the assistant' }))
  await shows('The assistant dropped answers from dropped.')
  expect(server.askedFor('PUT /assistants/dropped')[0]?.body).toMatchObject({ collections: ['dropped'] })
  await expectSound('start')
  server.on('POST /keys', ({ body }) => {
    const { value_prefix: _, ...rest } = key(1, body.description, { limits: body.limits })
    return made({ ...rest, value: 'page-key-value' })
  })
  await waitFor(() => expect(document.querySelector('.picture parley-chat')).not.toBe(null))
  const chat = document.querySelector('.picture parley-chat')!
  chat.dispatchEvent(new CustomEvent('parley-answer', { detail: { conversation: 'c-1' } }))
  const link = await screen.findByRole('link', { name: 'See its sources, and why it is what it is' })
  expect(link.getAttribute('href')).toBe('#c-1')
  await click(screen.getByRole('button', { name: 'Get the embed code' }))
  await shows('assistant="dropped" key="page-key-value"', '.secret code')
  expect(texts('.secret code')[0]).toContain('http://localhost:8108/widget/parley-chat.js')
  await expectSound('snippet')
})

test('the first run says where a collection has no documents', async () => {
  const server = sampleServer().on('GET /collections', [collection('empty', ['title'], { num_documents: 0 })])
  await openTab(server, '/start?collection=empty')
  await shows('It has no documents yet.')
  expect(document.querySelector('.step .badge')).toBe(null)
})
