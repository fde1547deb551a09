/** What is made in the console: models, assistants, keys, sources and webhooks. */
import { expect, test } from 'vitest'
import {
  assistant,
  collection,
  DOCS,
  delivery,
  HISTORY,
  key,
  made,
  model,
  QUESTION,
  run,
  sampleServer,
  source,
  webhook,
} from './sample'
import { failure } from './server'
import {
  address,
  choose,
  click,
  expectSound,
  openTab,
  screen,
  shows,
  texts,
  type,
  waitFor,
  within,
} from './tab'

const button = (name: string | RegExp) => screen.findByRole('button', { name })

test('a model is made with a history of its own, tested and deleted, and a test that fails says why', async () => {
  const fast = model('fast', { model_name: 'openai/gpt', history_collection: 'fast_history' })
  const server = sampleServer()
    .on('POST /collections', ({ body }) => {
      const history = collection(body.name, ['conversation_id'])
      server.on('GET /collections', [HISTORY, DOCS, history])
      return made(history)
    })
    .on('POST /conversations/models', () => {
      server.on('GET /conversations/models', [model('docs'), fast])
      return made(fast)
    })
  await openTab(server, '/models')
  await click(await screen.findByRole('link', { name: 'New model' }))
  const dialog = await screen.findByRole('dialog', { name: 'New model' })
  const name = within(dialog).getByLabelText('Language model')
  // The built-in model takes no key.
  expect(within(dialog).queryByLabelText("The provider's API key")).toBe(null)
  await type(within(dialog).getByLabelText('Name'), 'fast')
  await type(name, 'openai/gpt')
  await type(await within(dialog).findByLabelText("The provider's API key"), 'sk-test')
  await type(within(dialog).getByLabelText('Address'), 'https://llm.example.com')
  await expectSound('new model')
  await click(await button('Create model'))
  await waitFor(() => expect(texts('.item strong')).toEqual(['docs', 'fast']))
  expect(address()).toBe('/models')
  expect(server.askedFor('POST /collections').map(({ body }) => body.name)).toEqual(['fast_history'])
  expect(server.askedFor('POST /conversations/models').map(({ body }) => body)).toEqual([
    {
      id: 'fast',
      model_name: 'openai/gpt',
      history_collection: 'fast_history',
      max_bytes: 16_384,
      max_tokens: 1_024,
      api_key: 'sk-test',
      openai_url: 'https://llm.example.com',
    },
  ])
  expect(document.body.textContent).not.toContain('sk-test')

  // A test asks one question, whose conversation is deleted again.
  server
    .on('POST /conversations', {
      conversation_id: 'c-9',
      turn: 1,
      question: QUESTION,
      answer: 'Yes.',
      finish_reason: 'stop',
      citations: [],
      usage: { model: 'openai/gpt' },
      timings: {},
      results: [],
    })
    .on('DELETE /conversations/c-9', { id: 'c-9' })
  const item = () => screen.getByText('fast').closest<HTMLElement>('.item')!
  await click(within(item()).getByRole('button', { name: 'Test' }))
  await shows(/answered in \d+ ms/, '.item .good')
  await waitFor(() => expect(server.askedFor('DELETE /conversations/c-9')).toHaveLength(1))
  expect(server.askedFor('POST /conversations')[0]?.body).toMatchObject({
    model: 'fast',
    collections: ['docs'],
  })
  server.on('POST /conversations', () => failure(422, 'The model does not answer'))
  await click(within(item()).getByRole('button', { name: 'Test' }))
  await shows('The model does not answer.', '.test-state .bad')
  await expectSound('tested')

  server.on('DELETE /conversations/models/fast', () => {
    server.on('GET /conversations/models', [model('docs')])
    return fast
  })
  await click(await button('Delete the model fast'))
  await click(await button('Delete the model'))
  await waitFor(() => expect(texts('.item strong')).toEqual(['docs']))
})

test('a model whose history was deleted is given an empty one', async () => {
  const server = sampleServer()
    .on('GET /collections', [DOCS])
    .on('POST /collections', ({ body }) => {
      server.on('GET /collections', [DOCS, HISTORY])
      return made(collection(body.name, ['conversation_id']))
    })
  await openTab(server, '/models')
  await shows('It cannot answer: its history docs_history was deleted.', '.item')
  expect(screen.queryByRole('button', { name: 'Test' })).toBe(null)
  await expectSound('missing')
  // Another name for a collection that is there.
  server.on('GET /aliases', { aliases: [{ name: 'talk', collection_name: 'docs' }] })
  server.on('GET /conversations/models', [model('docs'), model('other', { history_collection: 'talk' })])
  await click(await button('Make an empty one'))
  await button('Test')
  expect(server.askedFor('POST /collections').map(({ body }) => body.name)).toEqual(['docs_history'])
})

test('a model that the server refuses is told of in its form, which stays', async () => {
  const server = sampleServer()
    .on('POST /collections', ({ body }) => made(collection(body.name)))
    .on('POST /conversations/models', () => failure(400, 'Model not found'))
  await openTab(server, '/models?new=1')
  await type(await screen.findByLabelText('Name'), 'fast')
  await click(await button('Create model'))
  await shows('Model not found.', 'dialog [role=alert]')
  expect(screen.getByLabelText<HTMLInputElement>('Name').value).toBe('fast')
})

test('an assistant is made, and shown beside a preview that asks with the key of the tab', async () => {
  const server = sampleServer().on('PUT /assistants/guide', ({ body }) => {
    server.on('GET /assistants/guide', assistant('guide', { ...body, followups: true }))
    return assistant('guide', body)
  })
  await openTab(server, '/assistants/new')
  await type(await screen.findByLabelText('Name'), 'guide')
  await click(screen.getByLabelText('docs'))
  await choose(screen.getByLabelText('Model'), 'docs')
  await type(screen.getByLabelText('First questions, one a line'), `${QUESTION}\n\n  And then? `)
  await type(screen.getByLabelText('Allowed websites (one per line)'), 'https://www.example.com')
  await click(screen.getByLabelText(/^Let the model search again/))
  await expectSound('new assistant')
  await click(await button('Save'))
  await screen.findByRole('heading', { name: 'guide', level: 1 })
  expect(server.askedFor('PUT /assistants/guide').map(({ body }) => body)).toEqual([
    {
      model: 'docs',
      collections: ['docs'],
      questions: [QUESTION, 'And then?'],
      followups: true,
      retrieval: 'agentic',
      allowed_origins: ['https://www.example.com'],
    },
  ])
  expect(address()).toBe('/assistants/guide')
  await waitFor(() => expect(document.querySelector('parley-chat')?.getAttribute('api-key')).toBe('xyz'))
  expect(document.querySelector('parley-chat')?.getAttribute('assistant')).toBe('guide')
  await expectSound('assistant')
})

test('what the form of an assistant does not show is kept when it is saved', async () => {
  const stored = assistant('help', { title_field: 'heading', strict: true, searches: undefined })
  const { name: _, created_at: __, updated_at: ___, ...body } = stored
  const server = sampleServer().on('GET /assistants/help', stored).on('PUT /assistants/help', stored)
  await openTab(server, '/assistants/help')
  await type(await screen.findByLabelText('Instructions'), 'Be brief.')
  await click(await button('Save'))
  await shows('Saved.', '.saved')
  expect(server.askedFor('PUT /assistants/help').map((asked) => asked.body)).toEqual([
    JSON.parse(JSON.stringify({ ...body, system_prompt: 'Be brief.' })),
  ])
})

test('an assistant gets a way to people, and loses it', async () => {
  const hours = { days: ['mon'], from: '09:00', to: '17:00', time_zone: 'Europe/Berlin' }
  const people = { url: 'mailto:help@example.com', after: 2, hours, outside: 'On Monday.' }
  const stored = assistant('help', { handover: people })
  const server = sampleServer().on('GET /assistants/help', stored).on('PUT /assistants/help', stored)
  await openTab(server, '/assistants/help')
  expect((await screen.findByLabelText<HTMLInputElement>('Address')).value).toBe('mailto:help@example.com')
  await choose(screen.getByLabelText('How visitors reach people'), 'A form, sent to a webhook')
  await type(screen.getByLabelText('Webhook'), 'https://desk.example.com/parley')
  await type(screen.getByLabelText('Offer it after so many declined answers'), '3')
  await click(screen.getByLabelText('Take texts and PDFs with a question'))
  await click(screen.getByLabelText('Friday'))
  await type(screen.getByLabelText('From'), '10:30')
  await type(screen.getByLabelText('What visitors read outside of them'), 'On Monday and Friday.')
  await expectSound('assistant with people')
  await click(await button('Save'))
  await shows('Saved.', '.saved')
  await click(screen.getByLabelText('Only within office hours'))
  await click(await button('Save'))
  await choose(screen.getByLabelText('How visitors reach people'), 'Not at all')
  await click(await button('Save'))
  await waitFor(() => expect(server.askedFor('PUT /assistants/help')).toHaveLength(3))
  const [first, second, third] = server.askedFor('PUT /assistants/help').map(({ body }) => body)
  const reached = { webhook: 'https://desk.example.com/parley', after: 3 }
  expect(first.attachments).toBe(true)
  expect(first.handover).toEqual({
    ...reached,
    hours: { ...hours, days: ['mon', 'fri'], from: '10:30' },
    outside: 'On Monday and Friday.',
  })
  expect(second.handover).toEqual(reached)
  expect(third).not.toHaveProperty('handover')
})

test('an assistant is deleted from the list', async () => {
  const server = sampleServer().on('DELETE /assistants/help', () => {
    server.on('GET /assistants', { assistants: [] })
    return assistant('help')
  })
  await openTab(server, '/assistants')
  await shows('searches docs · answers with docs', '.item')
  await click(await button('Delete the assistant help'))
  await click(await button('Delete the assistant'))
  await screen.findByRole('heading', { name: 'No assistants yet' })
})

test('a key for a page is shown once, with what to paste, and is deleted', async () => {
  const limits = { assistant: 'help', allowed_origins: ['https://www.example.com'] }
  const server = sampleServer().on('POST /keys', ({ body }) => {
    server.on('GET /keys', { keys: [key(3, 'page of help', { limits })] })
    const { value_prefix: _, ...rest } = key(3, body.description, { limits: body.limits })
    return made({ ...rest, value: 'page-key-value' })
  })
  await openTab(server, '/keys')
  await click(await screen.findByRole('link', { name: 'New key' }))
  await choose(await screen.findByLabelText('Assistant'), 'help')
  await type(screen.getByLabelText('Allowed websites'), 'https://www.example.com')
  await expectSound('new key')
  await click(await button('Create key'))
  await shows('page-key-value', '.secret code')
  const [, snippet] = texts('.secret code')
  expect(snippet).toContain('src="http://localhost:8108/widget/parley-chat.js"')
  expect(snippet).toContain('assistant="help" key="page-key-value"')
  expect(server.askedFor('POST /keys').map(({ body }) => body)).toEqual([
    { description: 'page of help', actions: ['documents:search'], collections: ['*'], limits },
  ])
  await expectSound('key')
  await click(await button('Done'))
  await waitFor(() => expect(texts('.item .badge')).toEqual(['page of help', 'https://www.example.com']))
  expect(document.body.innerHTML).not.toContain('page-key-value')
  server.on('PATCH /keys/{id}', ({ body }) => {
    const changed = key(3, body.description, { limits: { ...limits, turns_per_day: 20 } })
    server.on('GET /keys', { keys: [changed] })
    return changed
  })
  await click(await button('Edit the key page of help'))
  await type(await screen.findByLabelText('Questions per day'), '20')
  await expectSound('edit a key')
  await click(await button('Save'))
  await shows('20 questions a day', '.badge')
  expect(server.askedFor('PATCH /keys/{id}').map(({ body }) => body)).toEqual([
    {
      description: 'page of help',
      limits: { turns_per_day: 20, tokens_per_day: null, allowed_origins: ['https://www.example.com'] },
    },
  ])
  server.on('DELETE /keys/3', () => {
    server.on('GET /keys', { keys: [] })
    return { id: 3 }
  })
  await click(await button('Delete the key page of help'))
  await click(await button('Delete the key'))
  await screen.findByRole('heading', { name: 'No keys yet' })
})

test('a key for a program is made for the collections that are named', async () => {
  const server = sampleServer().on('POST /keys', ({ body }) => {
    const { value_prefix: _, ...rest } = key(4, body.description, { collections: body.collections })
    return made({ ...rest, value: 'search-key-value' })
  })
  await openTab(server, '/keys?new=1')
  await click(await screen.findByLabelText('A program: searches and converses'))
  await type(await screen.findByLabelText('Collections'), 'docs, shop')
  await click(await button('Create key'))
  await shows('search-key-value', '.secret code')
  expect(texts('.secret code')).toHaveLength(1)
  expect(server.askedFor('POST /keys').map(({ body }) => body)).toEqual([
    { description: 'search only', actions: ['documents:search'], collections: ['docs', 'shop'] },
  ])
})

test('a website is registered, read until its run has ended, and removed', async () => {
  const server = sampleServer().on('PUT /sources/site.example', () => {
    server.on('GET /sources', { sources: [source({})] })
    return source({})
  })
  await openTab(server, '/sources?new=1')
  await type(await screen.findByLabelText('Address'), 'https://site.example/')
  await type(screen.getByRole('textbox', { name: 'Collection' }), 'site')
  await expectSound('new source')
  await click(await button('Register'))
  await shows('not read yet', '.item')
  expect(server.askedFor('PUT /sources/site.example').map(({ body }) => body)).toEqual([
    { url: 'https://site.example/', collection: 'site', prune: true },
  ])
  const parts = [
    source({ state: 'reading', next_run_at: Date.now(), run: run({ pages: 1 }) }),
    source({
      last_run: run({
        pages: 3,
        changed: 2,
        failed: 1,
        failures: [{ url: 'https://site.example/lost', error: 'answered with 404' }],
      }),
    }),
  ]
  server.on('POST /sources/site.example/run', () => {
    const next = parts.shift()
    server.on('GET /sources', { sources: [next] })
    return next
  })
  await click(await button('Read now'))
  await shows(/3 pages, 2 changed/, '.item')
  expect(server.askedFor('POST /sources/site.example/run')).toHaveLength(2)
  await click(screen.getByText('1 failed'))
  await shows('answered with 404', '.faults')
  await expectSound('sources')
  server.on('DELETE /sources/site.example', () => {
    server.on('GET /sources', { sources: [] })
    return source({})
  })
  await click(await button('Delete the source site.example'))
  await click(await button('Remove the source'))
  await screen.findByRole('heading', { name: 'No sources yet' })
})

test('a model is changed in its place: only what is different is sent, and its key stays', async () => {
  const stored = model('docs', { model_name: 'openai/gpt', api_key: 'sk-no**', system_prompt: 'Be brief.' })
  const server = sampleServer()
    .on('GET /conversations/models', [stored])
    .on('PUT /conversations/models/docs', ({ body }) =>
      body.fallbacks
        ? failure(400, 'Property `fallbacks` names `none`, which is no conversation model.')
        : stored,
    )
  await openTab(server, '/models')
  await click(await button('Edit the model docs'))
  await type(await screen.findByLabelText('Temperature'), '0.2')
  await type(screen.getByLabelText('System prompt'), '')
  await type(screen.getByLabelText('Conversations expire after days'), '2')
  await type(screen.getByLabelText('Fallbacks'), 'none')
  await expectSound('edit a model')
  await click(await button('Save'))
  await shows('which is no conversation model.', 'dialog [role=alert]')
  await type(screen.getByLabelText('Fallbacks'), '')
  const rest = screen.getByLabelText<HTMLTextAreaElement>('JSON')
  expect(rest.value).not.toContain('sk-no')
  await type(rest, '{ "history_collection": "docs_history" ')
  await click(await button('Save'))
  await shows('This is not JSON', 'dialog [role=alert]')
  await type(rest, '{ "history_collection": "docs_history", "max_bytes": 16384, "turns_per_day": 9 }')
  await click(await button('Save'))
  await waitFor(() => expect(screen.queryByRole('dialog')).toBe(null))
  expect(server.askedFor('PUT /conversations/models/docs').at(-1)?.body).toEqual({
    system_prompt: null,
    turns_per_day: 9,
    temperature: 0.2,
    ttl: 172_800,
  })
})

test('rules of searches are made, changed under another name, and deleted', async () => {
  const sets = new Map<string, object>()
  const listed = () => [...sets].map(([name, set]) => ({ name, ...set }))
  const nameIn = (path: string) => path.split('/').at(-1)!
  const server = sampleServer()
    .on('GET /synonym_sets', listed)
    .on('PUT /synonym_sets/{name}', ({ path, body }) => {
      sets.set(nameIn(path), body)
      return { name: nameIn(path), ...body }
    })
    .on('DELETE /synonym_sets/{name}', ({ path }) => {
      sets.delete(nameIn(path))
      return { name: nameIn(path) }
    })
    .on('GET /aliases', { aliases: [{ name: 'live', collection_name: 'docs' }] })
  await openTab(server, '/rules')
  await click(await button('New synonym set'))
  await click(await button('Save'))
  await shows('It has no name.', 'dialog [role=alert]')
  const items = [{ id: 'coat', synonyms: ['coat', 'jacket'] }]
  await type(screen.getByLabelText('JSON'), JSON.stringify({ name: 'coats', items }))
  await click(await button('Save'))
  await shows('1 rule', '.item')
  await expectSound('rules')
  await click(await button('Edit the synonym set coats'))
  await type(await screen.findByLabelText('JSON'), JSON.stringify({ name: 'jackets', items }))
  await click(await button('Save'))
  await waitFor(() => expect(texts('.item strong')).toEqual(['jackets']))
  await click(await button('Delete the synonym set jackets'))
  await click(await button('Delete'))
  await screen.findByRole('heading', { name: 'No synonyms yet' })
  await click(screen.getByRole('link', { name: 'Aliases' }))
  await shows('leads to docs', '.item')
})

test('a list whose change fails stays as it is, and says why', async () => {
  const server = sampleServer().on('DELETE /assistants/help', () => failure(503, 'D1 is away'))
  await openTab(server, '/assistants')
  await click(await button('Delete the assistant help'))
  await click(await button('Delete the assistant'))
  await shows('D1 is away. Try again in a moment.', 'dialog [role=alert]')
  expect(texts('.item-name')).toEqual(['help'])
})

test('a webhook shows its secret once, is sent a test, and what it did not take is sent again', async () => {
  const server = sampleServer().on('PUT /webhooks/crm', ({ body }) => {
    const stored = webhook({ url: body.url, events: body.events })
    server.on('GET /webhooks', { webhooks: [stored] })
    return { ...stored, secret: 'whsec_a-secret' }
  })
  await openTab(server, '/webhooks?new=1')
  await type(await screen.findByLabelText('Name'), 'crm')
  await type(screen.getByLabelText('Address'), 'https://crm.example.com/parley')
  await click(screen.getByLabelText('An answer is rated'))
  await expectSound('new webhook')
  await click(await button('Register'))
  await shows('whsec_a-secret', '.secret code')
  await click(await button('Done'))
  await waitFor(() => expect(texts('.item strong')).toEqual(['crm']))
  expect(document.body.textContent).not.toContain('whsec_')
  expect(server.askedFor('PUT /webhooks/crm').map(({ body }) => body)).toEqual([
    { url: 'https://crm.example.com/parley', events: ['turn.finished', 'feedback'] },
  ])

  const lost = delivery({ state: 'given_up', tries: 20, outcome: 'The webhook replied with status 503.' })
  server.on('POST /webhooks/crm/test', () => {
    server.on('GET /webhooks/deliveries', {
      deliveries: [delivery({ id: 'm-2', event: 'webhook.test' }), lost],
    })
    return delivery({ id: 'm-2', event: 'webhook.test' })
  })
  await click(await button('Send a test'))
  await shows(/given up.*replied with status 503/, '.table')
  await expectSound('webhooks')
  server.on('POST /webhooks/deliveries/m-1', () => {
    server.on('GET /webhooks/deliveries', { deliveries: [delivery()] })
    return delivery()
  })
  await click(await button('Send again'))
  await waitFor(() => expect(screen.queryByRole('button', { name: 'Send again' })).toBe(null))
  await click(await button('Edit the webhook crm'))
  await click(await screen.findByLabelText('Give it a new secret'))
  await click(await button('Save'))
  await shows('whsec_a-secret', '.secret code')
  expect(server.askedFor('PUT /webhooks/crm').at(-1)?.body).toMatchObject({ new_secret: true })
})
