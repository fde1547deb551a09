/** A website's address in "Get started": read while one looks on, then a chat in its name and colour, with what to paste. */
import { expect, test } from 'vitest'
import { assistant, collection, emptyServer, found, hit, key, made, model, run, source } from './sample'
import { type FakeServer, failure } from './server'
import { address, click, expectSound, openTab, screen, shows, texts, type, waitFor, within } from './tab'

const SITE = 'https://docs.example.com/'
const COLLECTION = 'docs-example'
const page = (title: string) => hit({ id: title, title, url: SITE + title } as { id: string })

const website = (more: object = {}) =>
  source({
    name: 'docs.example.com',
    url: SITE,
    collection: COLLECTION,
    site: { name: 'The "Docs"', color: '#b00020' },
    next_run_at: Date.now(),
    ...more,
  })

/** A server that registers a website and makes what a chat takes. @param titles of the pages that it has read so far, the newest first */
function registering(titles: string[] = []): FakeServer {
  const server = emptyServer()
  return server
    .on('PUT /sources/{name}', () => {
      holds(server, website(), 0)
      return website()
    })
    .on(`GET /collections/${COLLECTION}/documents/search`, () => found(titles.map(page)))
    .on('POST /collections', ({ body }) => made(collection(body.name, ['conversation_id'])))
    .on('POST /conversations/models', ({ body }) =>
      made(model(body.id, { history_collection: body.history_collection })),
    )
    .on(`PUT /assistants/${COLLECTION}`, ({ body }) => {
      const one = assistant(COLLECTION, body)
      server.on('GET /assistants', { assistants: [one] })
      return one
    })
    .on('POST /keys', ({ body }) => {
      const { value_prefix: _, ...rest } = key(1, body.description, { limits: body.limits })
      return made({ ...rest, value: 'page-key-value' })
    })
    .on('DELETE /sources/{name}', () => {
      server.on('GET /sources', { sources: [] })
      return website()
    })
    .on('DELETE /collections/{name}', () => {
      server.on('GET /collections', [])
      return collection(COLLECTION)
    })
}

/** Has a server list a source, and its collection with so many documents. */
const holds = (server: FakeServer, one: object, documents: number): FakeServer =>
  server
    .on('GET /sources', { sources: [one] })
    .on('GET /collections', [collection(COLLECTION, ['title', 'text'], { num_documents: documents })])

const field = () => screen.findByLabelText<HTMLInputElement>('The address of your website')
async function name(typed: string): Promise<void> {
  await type(await field(), typed)
  await click(screen.getByRole('button', { name: 'Read the website' }))
}

test('a website is read, gets an assistant and a key of its own, and is shown with its chat', async () => {
  const titles = ['Feeding', 'Installing', 'Welcome']
  const server = registering(titles)
  const read = Promise.withResolvers<void>()
  server.on('POST /sources/docs.example.com/run', async () => {
    await read.promise
    const failures = [{ url: `${SITE}a.pdf`, error: 'is application/pdf, which is not read here' }]
    const now = website({
      state: 'reading',
      run: run({ pages: 20, changed: 19, failed: 1, failures, left: 5 }),
    })
    holds(server, now, 19)
    return now
  })
  await openTab(server, '/start')
  await expectSound('nothing yet')
  await name('docs.example.com')
  await shows('Installing', '.titles')
  await shows(`Reading ${SITE} …`, '[role=status]')
  expect(address()).toBe(`/start?collection=${COLLECTION}`)
  expect(server.askedFor('PUT /sources/{name}').map(({ path, body }) => [path, body])).toEqual([
    ['/sources/docs.example.com', { url: SITE, collection: COLLECTION, prune: true }],
  ])
  await expectSound('reading')
  read.resolve()
  await shows('20 pages read. 5 more are known and follow in the background, 20 a minute, up to 1,000.')
  await shows('is application/pdf, which is not read here', '.faults')
  await shows('page-key-value', '.secret code')
  expect(texts('.secret code')[0]).toContain(
    `<parley-chat assistant="${COLLECTION}" key="page-key-value" mode="bubble" heading="The &quot;Docs&quot;" style="--parley-accent: #b00020">`,
  )
  expect(server.askedFor(`PUT /assistants/${COLLECTION}`)[0]?.body).toMatchObject({
    collections: [COLLECTION],
    questions: ['Installing', 'Feeding'],
  })
  expect(server.askedFor('POST /keys')[0]?.body.limits).toEqual({
    assistant: COLLECTION,
    allowed_origins: ['https://docs.example.com'],
  })
  await waitFor(() => expect(document.querySelector('.picture parley-chat')).not.toBe(null))
  const chat = document.querySelector<HTMLElement>('.picture parley-chat')!
  expect([chat.getAttribute('heading'), chat.style.getPropertyValue('--parley-accent')]).toEqual([
    'The "Docs"',
    '#b00020',
  ])
  await shows('Installing', '.picture-body li')
  await expectSound('ready')
  chat.dispatchEvent(new CustomEvent('parley-answer', { detail: { conversation: 'c-1' } }))
  const link = await screen.findByRole('link', { name: 'See its sources, and why it is what it is' })
  expect(link.getAttribute('href')).toBe('#c-1')
})

test('of a website that cannot be read nothing is left but its address and the reason', async () => {
  const server = registering()
  const failures = [{ url: SITE, error: 'robots.txt does not allow it' }]
  server.on('POST /sources/docs.example.com/run', () => website({ last_run: run({ failed: 1, failures }) }))
  await openTab(server, '/start')
  await name(SITE)
  await shows(`Nothing could be read of ${SITE}: robots.txt does not allow it.`, '[role=alert]')
  expect((await field()).value).toBe(SITE)
  expect(address()).toBe('/start')
  expect(server.askedFor('DELETE /sources/{name}')).toHaveLength(1)
  expect(server.askedFor('DELETE /collections/{name}').map(({ path }) => path)).toEqual([
    `/collections/${COLLECTION}`,
  ])
  await shows('First do step 1.')
  await expectSound('unread')
})

test('a source that cannot be read stays where its collection holds something', async () => {
  const server = holds(registering(['Welcome']), website(), 2)
  const failures = [{ url: SITE, error: 'answered with 403' }]
  server.on('POST /sources/docs.example.com/run', () => website({ last_run: run({ failed: 1, failures }) }))
  await openTab(server, '/start')
  await shows(`Nothing could be read of ${SITE}: answered with 403.`, '[role=alert]')
  expect(server.askedFor('DELETE /sources/{name}')).toEqual([])
  expect(server.askedFor('DELETE /collections/{name}')).toEqual([])
  expect(server.askedFor('PUT /assistants/{name}')).toEqual([])
})

test('an address that is none, or that may not be called, says what to do, and makes nothing', async () => {
  const refusal =
    'Calls to `http://10.0.0.1` are not allowed. To allow them, add `10.0.0.1` to the variable ALLOWED_HOSTS'
  const server = registering().on('PUT /sources/{name}', () => failure(400, refusal))
  await openTab(server, '/start')
  await name('my site')
  await shows('This is no address of a website.', '[role=alert]')
  expect(server.askedFor('PUT /sources/{name}')).toEqual([])
  await name('http://10.0.0.1/')
  await shows('add `10.0.0.1` to the variable ALLOWED_HOSTS', '[role=alert]')
  expect(server.askedFor('DELETE /collections/{name}')).toEqual([])
})

test('whoever comes back sees the reading go on, and can try again where the server did not answer', async () => {
  const server = holds(registering(['Welcome']), website(), 1)
  server.on('POST /sources/docs.example.com/run', () => failure(500, 'It broke'))
  await openTab(server, '/start')
  await shows('It broke. Try again in a moment.', '.reading [role=alert]')
  server.on('POST /sources/docs.example.com/run', () => {
    const ended = website({ last_run: run({ pages: 1, changed: 1 }), next_run_at: Date.now() + 60_000 })
    holds(server, ended, 1)
    return ended
  })
  await click(within(screen.getByRole('alert')).getByRole('button', { name: 'Try again' }))
  await shows(/1 page, 1 changed/, '.reading')
  await shows('page-key-value', '.secret code')
  expect(server.askedFor('PUT /sources/{name}')).toEqual([])
  expect(server.askedFor('DELETE /sources/{name}')).toEqual([])
})

test('a website that asks to be left alone is, and one that is there already is only shown', async () => {
  const busy = website({
    state: 'reading',
    next_run_at: Date.now() + 60_000,
    run: run({ pages: 3, left: 9 }),
  })
  const server = holds(registering(['Welcome']), busy, 3)
  await openTab(server, '/start')
  await shows(/asked to be left alone until .* Then it is read on/, '.reading')
  expect(server.askedFor('POST /sources/{name}/run')).toEqual([])
  holds(server, website({ last_run: run({ pages: 3, changed: 3 }) }), 3)
  await openTab(server, '/start')
  await click(await screen.findByText('Another website, or files'))
  await name(SITE)
  await waitFor(() => expect(address()).toBe(`/start?collection=${COLLECTION}`))
  expect(server.askedFor('PUT /sources/{name}')).toEqual([])
  // Nothing is made unasked for a website that was read before.
  await screen.findByRole('button', { name: 'Make the assistant' })
})
