/** Conversations in the console: the list and what narrows it, one to read, and what nothing answered. */
import { expect, test } from 'vitest'
import {
  ANSWER,
  answered,
  DOCUMENT,
  failedTurn,
  found,
  hit,
  QUESTION,
  sampleServer,
  summary,
  traced,
  turn,
  withConversation,
} from './sample'
import { failure } from './server'
import {
  address,
  choose,
  click,
  downloaded,
  enter,
  expectSound,
  go,
  openTab,
  reload,
  screen,
  shows,
  texts,
  type,
  waitFor,
  within,
} from './tab'

const rows = () => texts('.row-title')

/** A server whose list says what it was narrowed by, in the title of its only conversation. */
const narrowed = () =>
  sampleServer().on('GET /conversations', ({ query }) => {
    if (query.get('limit') !== '50') return { conversations: [] }
    const said = [...query].filter(([name]) => name !== 'limit').map(([name, value]) => `${name}=${value}`)
    return { conversations: [summary('c-1', said.join(' ') || 'all')] }
  })

test('are narrowed by what they say, by user, by rating and by what went wrong, and the address says by what', async () => {
  await openTab(narrowed(), '/conversations')
  await waitFor(() => expect(rows()).toEqual(['all']))
  await enter(screen.getByLabelText('User'), 'ann')
  await waitFor(() => expect(rows()).toEqual(['user_id=ann']))
  await type(screen.getByRole('searchbox', { name: 'Search questions and answers' }), 'tides ')
  await waitFor(() => expect(rows()).toEqual(['q=tides user_id=ann']))
  await reload()
  await waitFor(() => expect(rows()).toEqual(['q=tides user_id=ann']))
  await choose(screen.getByLabelText('Answers'), 'Failed')
  await waitFor(() => expect(rows()).toEqual(['q=tides user_id=ann failed=true']))
  await choose(screen.getByLabelText('Answers'), 'Cites nothing')
  await choose(screen.getByLabelText('Rating'), 'Rated bad')
  await waitFor(() => expect(rows()).toEqual(['q=tides user_id=ann rating=down unanswered=true']))
  await choose(screen.getByLabelText('Time'), 'The last day')
  await waitFor(() => expect(rows()[0]).toMatch(/from=\d{13}$/))
  await expectSound('narrowed')
})

test('take their filters from the address, and give them back with it', async () => {
  await openTab(narrowed(), '/conversations')
  const words = await screen.findByRole<HTMLInputElement>('searchbox', {
    name: 'Search questions and answers',
  })
  const user = screen.getByLabelText<HTMLInputElement>('User')
  go('/conversations?q=tides&user=ann&rating=down')
  await waitFor(() => expect([words.value, user.value]).toEqual(['tides', 'ann']))
  history.back()
  await waitFor(() => expect([words.value, user.value]).toEqual(['', '']))
  await type(words, 'reefs')
  await waitFor(() => expect(address()).toBe('/conversations?q=reefs'))
})

test('say so when none fits', async () => {
  await openTab(sampleServer(), '/conversations?user=nobody')
  await screen.findByRole('heading', { name: 'No conversation fits' })
})

test('show how they were rated and whether one failed', async () => {
  const server = sampleServer().on('GET /conversations', {
    conversations: [
      summary('c-1', 'Rated', { ratings: { up: 2, down: 1 } }),
      summary('c-2', 'Failed', { failed_at: Date.now() }),
      summary('c-3', '', { user_id: 'ann' }),
    ],
  })
  await openTab(server, '/conversations')
  await waitFor(() => expect(rows()).toEqual(['Rated', 'Failed', 'Untitled']))
  expect(texts('.row .badge')).toEqual(['2 good', '1 bad', 'failed'])
  await expectSound('rated')
})

test('keep to the filter that is set last, whatever part of the list comes late', async () => {
  const gate = Promise.withResolvers<void>()
  const server = sampleServer().on('GET /conversations', async ({ query }) => {
    if (query.has('cursor')) await gate.promise
    const title = `${query.get('rating') ?? 'any'} ${query.get('cursor') ?? 'first'}`
    const hasMore = !query.has('cursor') && !query.has('rating')
    return { conversations: [summary(title, title)], ...(hasMore && { next_cursor: 'late' }) }
  })
  await openTab(server, '/conversations')
  await click(await screen.findByRole('button', { name: 'Load earlier ones' }))
  await choose(screen.getByLabelText('Rating'), 'Rated bad')
  await waitFor(() => expect(rows()).toEqual(['down first']))
  gate.resolve()
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(rows()).toEqual(['down first'])
})

test('come part after part', async () => {
  const server = sampleServer().on('GET /conversations', ({ query }) => ({
    conversations: [summary(`c-${query.get('cursor')}`, query.get('cursor') ?? 'first')],
    ...(!query.has('cursor') && { next_cursor: 'second' }),
  }))
  await openTab(server, '/conversations')
  await click(await screen.findByRole('button', { name: 'Load earlier ones' }))
  await waitFor(() => expect(rows()).toEqual(['first', 'second']))
  expect(screen.queryByRole('button', { name: 'Load earlier ones' })).toBe(null)
})

const download = (name: string) => downloaded(() => click(screen.getByRole('button', { name })))

test('one is read, exported with what was said of it, and deleted', async () => {
  const feedback = {
    rating: 'down',
    comment: 'Too <b>long</b>.',
    reasons: ['long', 'outdated'],
    own: false,
    created_at: 1,
    updated_at: 1,
  }
  const server = withConversation(sampleServer(), 'c-1', {
    turns: [turn(1, QUESTION, { feedback: [feedback] })],
    traces: [traced(1), failedTurn(2, 'And without a field?', 'Could not find a field named `nothing`.')],
    user_id: 'ann',
  }).on('DELETE /conversations/c-1', { id: 'c-1' })
  await openTab(server, '/conversations/read/c-1')
  await shows('A turn is stored as two documents.', '.read-turn')
  await shows(QUESTION, '.read-sources a')
  await shows('And without a field?', '.faults')
  expect(texts('.faults .bad')).toEqual(['Could not find a field named `nothing`.'])
  const said = screen.getByRole('list', { name: 'Feedback' })
  within(said).getByText('Too <b>long</b>.')
  expect(texts('.said .badge')).toEqual(['long', 'Out of date'])
  await expectSound('conversation')
  expect(JSON.parse(await download('JSON'))).toMatchObject({
    id: 'c-1',
    user_id: 'ann',
    turns: [{ question: QUESTION, citations: [{ document_id: 'history' }], feedback: [{ rating: 'down' }] }],
  })
  const markdown = await download('Markdown')
  for (const part of [`## ${QUESTION}`, 'Sources: `docs/history`', 'Rated: down. Too <b>long</b>.'])
    expect(markdown).toContain(part)
  await click(within(screen.getByRole('main')).getByRole('button', { name: 'Delete' }))
  const dialog = await screen.findByRole('dialog')
  await expectSound('to be deleted')
  server.on('GET /conversations', { conversations: [] })
  await click(within(dialog).getByRole('button', { name: 'Delete' }))
  await screen.findByRole('heading', { name: 'No conversations yet' })
  expect(server.askedFor('DELETE /conversations/c-1')).toHaveLength(1)
})

test('one of several parts is read whole', async () => {
  const one = { ...summary('c-1'), turn_count: 2 }
  const server = withConversation(sampleServer(), 'c-1').on('GET /conversations/c-1', ({ query }) =>
    query.has('before')
      ? { ...one, turns: [turn(1, 'First?')] }
      : { ...one, turns: [turn(2, 'Second?')], earlier: 2 },
  )
  await openTab(server, '/conversations/read/c-1')
  await waitFor(() => expect(texts('.read-turn h2')).toEqual(['First?', 'Second?']))
})

test('one is shown without its failures to a key that may not read traces', async () => {
  const server = withConversation(sampleServer(), 'c-1').on('GET /conversations/c-1/trace', () =>
    failure(401, 'Forbidden'),
  )
  await openTab(server, '/conversations/read/c-1')
  await shows('A turn is stored as two documents.', '.read-turn')
  expect(screen.queryByRole('alert')).toBe(null)
})

test('one shows which sentences of a model the documents do not support', async () => {
  const end = ANSWER.indexOf('.') + 1
  const support = [
    { start: 0, end, support: 'supported' },
    { start: end + 1, end: ANSWER.length, support: 'not_found', missing: ['1931', 'Ferdinand', 'Huber'] },
  ]
  const server = withConversation(sampleServer(), 'c-1', { turns: [turn(1, QUESTION, { support })] })
  await openTab(server, '/conversations/c-1')
  await click(await screen.findByText('The documents do not support 1 of 2 sentences'))
  await shows('Its keeper is Ferdinand Huber, since 1931.', '.doubted li')
  await shows('Not in the documents: 1931, Ferdinand, Huber', '.doubted li')
  await expectSound('unsupported sentences')
})

test('a question of one is asked again in the chat, in a conversation of its own', async () => {
  const server = withConversation(sampleServer(), 'c-1')
  server
    .on('POST /conversations', ({ body }) => server.turn('c-2', 1, answered('c-2', body.question)))
    .on('GET /conversations/c-2', { ...summary('c-2'), turns: [turn(1)] })
    .on('GET /conversations/c-2/trace', { id: 'c-2', turns: [traced(1)] })
    .on('PUT /conversations/c-2/turns/1/feedback', ({ body }) => ({
      ...body,
      own: true,
      created_at: 1,
      updated_at: 1,
    }))
  await openTab(server, '/conversations/c-1')
  await click(await screen.findByRole('button', { name: 'Ask again' }))
  await shows('A turn is stored as two documents', '.turn[aria-busy="false"] .prose')
  await waitFor(() => expect(address()).toBe('c-2'))
  const { body } = server.askedFor('POST /conversations')[0]!
  expect(body).toMatchObject({ question: QUESTION, model: 'docs', collections: ['docs'] })
  expect(body).not.toHaveProperty('conversation_id')
  await click(await screen.findByRole('button', { name: 'Good answer' }))
  await screen.findByRole('button', { name: 'Good answer', pressed: true })
  expect(server.askedFor('PUT /conversations/c-2/turns/1/feedback').map((asked) => asked.body)).toEqual([
    { rating: 'up' },
  ])
})

test('one whose visitor asked for a person is replied to, by name', async () => {
  const asked = (turns: object[]) => ({ ...summary('c-1'), turns, handed_over_at: Date.now() })
  const server = withConversation(sampleServer(), 'c-1').on('GET /conversations/c-1', asked([turn(1)]))
  server.on('POST /conversations/c-1/replies', ({ body: { author, message } }) => {
    const said = turn(2, '', { answer: message, author, citations: [] })
    server.on('GET /conversations/c-1', asked([turn(1), said]))
    return { turn: 2 }
  })
  await openTab(server, '/conversations/read/c-1')
  await screen.findByRole('heading', { name: /^Asked for a person/ })
  await type(screen.getByLabelText('Your name'), 'Mary')
  await type(screen.getByLabelText('Message'), 'We deliver on Monday.')
  await expectSound('reply')
  await click(screen.getByRole('button', { name: 'Reply' }))
  await waitFor(() => expect(texts('.read-turn h2')).toEqual([QUESTION, 'Mary']))
  expect(texts('.read-turn:nth-of-type(2) .badge')).toEqual([])
  expect(screen.getAllByRole('button', { name: 'Ask again' })).toHaveLength(1)
  expect(server.askedFor('POST /conversations/c-1/replies').map(({ body }) => body)).toEqual([
    { author: 'Mary', message: 'We deliver on Monday.' },
  ])
  expect(await download('Markdown')).toContain('## Mary\n\nWe deliver on Monday.')
})

const gap = (question: string, more: object = {}) => ({
  ...{ question, times: 1, examples: [], faults: {}, reasons: {}, nearest: [] },
  last_asked: { conversation_id: 'c-1', turn: 1, created_at: Date.now() },
  ...more,
})

test('questions that nothing answers are grouped by what they mean, with the document that comes nearest', async () => {
  const server = withConversation(sampleServer(), 'c-1')
    .on('GET /gaps', {
      turns: 9,
      gaps: [
        gap('Where is zinc?', {
          times: 3,
          examples: ['where is zinc', 'Where can I find zinc?'],
          faults: { cites_nothing: 2, rated_down: 1 },
          reasons: { outdated: 1, 'No zinc': 1 },
        }),
        gap('=Is it open?', {
          faults: { warned: 1 },
          answered_since: { conversation_id: 'c-9', turn: 2, created_at: Date.now() },
        }),
        gap('Hi', { faults: { declined: 1 } }),
      ],
    })
    .on('GET /conversations/{id}/trace', { id: 'c-1', turns: [] })
    .on('POST /multi_search', ({ body }) => ({
      results: body.searches.map(() => found([hit(DOCUMENT, { distance: 0.4 })])),
    }))
  await openTab(server, '/conversations/unanswered')
  await waitFor(() => expect(texts('.item-name')).toEqual(['Where is zinc?', '=Is it open?', 'Hi']))
  expect(texts('.item .badge')).toEqual([
    ...['cites nothing (2)', 'rated bad', 'Out of date', 'No zinc', '3 times'],
    ...['with a warning', expect.stringMatching(/^answered /), '1 time'],
    ...['declined', '1 time'],
  ])
  expect(document.querySelector('.item a.badge')?.getAttribute('href')).toBe('#c-9')
  await shows(`“Where can I find zinc?”Nearest document: ${QUESTION}, 60% alike in meaning`, '.item')
  await shows(
    'Of the latest 9 turns. In all: cites nothing (2), rated bad, Out of date, No zinc, with a warning, declined.',
    '.lead',
  )
  await expectSound('unanswered')
  // A spreadsheet takes nothing that a visitor wrote for a formula.
  const rows = (await download('CSV')).split('\r\n')
  expect(rows).toHaveLength(4)
  expect(rows[1]).toMatch(
    /^"Where is zinc\?","3","20.*Z","cites nothing \(2\), rated bad, Out of date, No zinc","where is zinc \| Where can I find zinc\?","docs\/history","0.60",""$/,
  )
  expect(rows[2]).toMatch(/^"'=Is it open\?".*"20[^"]*Z"$/)
  await click(screen.getAllByRole('link', { name: 'Write a page' })[0]!)
  await screen.findByRole('dialog', { name: 'Write a page' })
  expect(address()).toMatch(/^\/fix\?a=c-1\/1&write=1$/)
})
