/** The chat of the console: asking, the panel that shows how an answer came about, versions, and the list of conversations. */
import { fireEvent } from '@testing-library/dom'
import { expect, test } from 'vitest'
import {
  ANSWER,
  answered,
  model,
  QUESTION,
  sampleServer,
  search,
  summary,
  traced,
  turn,
  withConversation,
} from './sample'
import { type FakeServer, failure } from './server'
import { address, click, enter, expectSound, go, openTab, screen, shows, texts, waitFor, within } from './tab'

const PANEL = '[aria-label="Why this answer?"]'
const ENDED = '.turn[aria-busy="false"]'

/** A server that answers each question as the next turn of `c-1`. */
function asking(): FakeServer {
  let turns = 0
  const server = sampleServer()
  return server
    .on('POST /conversations', ({ body }) => {
      turns += 1
      return server.turn('c-1', turns, answered('c-1', body.question))
    })
    .on('GET /conversations/c-1/trace', ({ query }) => ({
      id: 'c-1',
      turns: [traced(Number(query.get('turn')))],
    }))
}

test('offers first questions, and shows the sources of an answer and how it came about', async () => {
  const server = asking()
  await openTab(server)
  await expectSound('empty')
  await click(await screen.findByRole('button', { name: QUESTION }))
  await shows('Answered by local/extractive')
  await shows('A turn is stored as two documents', `${ENDED} .prose`)
  expect(server.askedFor('POST /conversations')[0]?.body).toEqual({
    question: QUESTION,
    model: 'docs',
    collections: ['docs'],
  })
  expect(address()).toBe('c-1')
  await shows('Write the answer', PANEL)
  await shows(QUESTION, `${PANEL} .parts`)
  await click(screen.getByText('Write the answer'))
  await shows(`<Question>${QUESTION}</Question>`, `${PANEL} pre`)
  await expectSound('panel')
  await click(document.querySelector('.cite')!)
  await shows('A turn is stored as two documents.', '.card')
  await expectSound('card')
  expect(document.querySelector('.card a')?.getAttribute('href')).toBe(
    'http://localhost:8108/document#docs/history',
  )
  // The panel is closed, and opened again for a turn.
  const toggle = screen.getByRole('button', { name: 'Why this answer?' })
  await click(toggle)
  await waitFor(() => expect(document.querySelector(PANEL)).toBe(null))
  await click(toggle)
  await shows(QUESTION, `${PANEL} .asked-question`)
})

test('says in the card of a digit what the sources say of its sentence, and dims on request what none supports', async () => {
  const end = ANSWER.indexOf('.') + 1
  const support = [
    { start: 0, end, support: 'supported' },
    { start: end + 1, end: ANSWER.length, support: 'not_found', missing: ['1931'] },
  ]
  const server = asking().on('POST /conversations', ({ body }) =>
    server.turn('c-1', 1, [
      ...answered('c-1', body.question).slice(0, -1),
      ['done', { finish_reason: 'stop', answer: ANSWER, support }],
    ]),
  )
  await openTab(server)
  await click(await screen.findByRole('button', { name: QUESTION }))
  await click(await screen.findByRole('button', { name: 'Check against the sources' }))
  await waitFor(() => expect(texts('.unfound')).toEqual(['Its keeper is Ferdinand Huber, since 1931.']))
  await shows('Sentences that the sources do not fully support: 1 of 2.', '.check-note')
  await click(await screen.findByRole('button', { name: 'Not found in the sources.' }))
  await shows('Not in the sources: 1931', '.card .support')
  await expectSound('checked')
  await click(document.querySelector('.cite:not(.doubt)')!)
  await shows('The sources support this sentence.', '.card .support')
})

test('shows what is found before there is an answer, and the whole of it after', async () => {
  const gate = Promise.withResolvers<void>()
  const server = asking().on('POST /conversations', ({ body }) =>
    server.turn('c-1', 1, answered('c-1', body.question), { 2: gate.promise }),
  )
  await openTab(server)
  await enter(await screen.findByLabelText('Your question'), QUESTION)
  await shows('Live', PANEL)
  await shows(QUESTION, `${PANEL} .parts`)
  expect(texts(PANEL)[0]).not.toContain('What the model was sent')
  expect(screen.queryByRole('button', { name: 'Ask' })).toBe(null)
  await expectSound('live')
  gate.resolve()
  await shows('Write the answer', PANEL)
  expect(texts(PANEL)[0]).not.toContain('Live')
})

test('shows how a follow-up was rewritten, and where the time of it went', async () => {
  const standalone = 'How long is the history of Parley kept?'
  const calls = ['standalone', 'answer'].map((purpose) => ({
    purpose,
    model: 'openai/gpt',
    prompt: [{ role: 'user', content: 'Say it.' }],
    input_tokens: 3,
    output_tokens: 4,
    started: purpose === 'standalone' ? 0 : 50,
    first_token: 60,
    took: 20,
  }))
  const server = withConversation(sampleServer(), 'c-1', {
    turns: [turn(1), turn(2, 'How long is it kept?', { standalone })],
    traces: [traced(2, 'How long is it kept?', { standalone, calls, searches: [search('docs')] })],
  })
  await openTab(server, 'c-1')
  await shows(standalone, `${PANEL} .rewritten`)
  await shows('Rewrite the question', PANEL)
  expect(texts(`${PANEL} .waterfall li`).join()).toMatch(/Rewriting.*Search docs.*Generating.*Total/)
  server.on('GET /conversations/c-1/trace', { id: 'c-1', turns: [traced(1)] })
  await click(screen.getAllByRole('button', { name: 'Why this answer?' })[0]!)
  await waitFor(() => expect(texts(`${PANEL} .asked-question`)).toEqual([QUESTION]))
})

test('says which documents an answer cites, which it does not, what was left out, and what it cost', async () => {
  const hits = ['history', 'keys', 'tides'].map((id) => ({
    id,
    text_match: 733417557426,
    vector_distance: 0.4,
  }))
  const cut = [
    { collection: 'docs', document_id: 'keys', passages: 2, of: 5 },
    { collection: 'docs', document_id: 'tides', passages: 0, of: 1 },
  ]
  const support = [{ start: 0, end: ANSWER.length, support: 'supported' }]
  const whole = traced(1, QUESTION, { searches: [search('docs', {}, { hits, found: 40 })], cut })
  const server = withConversation(sampleServer(), 'c-1', { traces: [{ ...whole, support }] })
  await openTab(server, 'c-1')
  await shows('40 documents matched; the best 3 were taken.', PANEL)
  const panel = within(screen.getByRole('complementary', { name: 'Why this answer?' }))
  await waitFor(() => expect(texts(`${PANEL} :is(h4, .parts li)`).slice(0, 1)).toEqual(['Cited']))
  // The cited one is called by its title, and has its digit and the sentence that it stands behind.
  expect(texts(`${PANEL} :is(h4, .parts li)`)).toEqual([
    'Cited',
    `1${QUESTION}“${ANSWER.slice(0, ANSWER.indexOf('.') + 1)}”`,
    'Read, not cited',
    'keys2 of 5 passages fit into the prompt',
    'Left out: the prompt was full',
    'tides',
  ])
  await panel.findByText('The documents support its sentence.')
  expect(texts(`${PANEL} .fact-row`)).toContain('CostNothing')
  // Numbers are behind a fold, and none of them is a raw score.
  expect(panel.getByText('Scores and search options').closest('details')?.open).toBe(false)
  expect(texts(`${PANEL} .score-table tbody tr`)[0]).toBe(`${QUESTION}100%60%–`)
  expect(texts(PANEL)[0]).not.toContain('733417557426')
})

test('asks an edited question in place of the old one, and for the answer once more; earlier versions can be read', async () => {
  const stored = (number: number, question: string) => turn(number, question, { versions: [1, 2, 3] })
  const server = asking()
  await openTab(server)
  await enter(await screen.findByLabelText('Your question'), 'How long is history kept?')
  await shows('Answered by')
  await click(await screen.findByRole('button', { name: 'Edit the question' }))
  await enter(await screen.findByLabelText('Your edited question'), QUESTION)
  await shows(QUESTION, `${ENDED} .question-text`)
  await shows('2/2')
  await click(await screen.findByRole('button', { name: 'Regenerate' }))
  await shows('3/3')
  expect(server.askedFor('POST /conversations').map(({ body }) => [body.question, body.replaces])).toEqual([
    ['How long is history kept?', undefined],
    [QUESTION, 1],
    [QUESTION, 2],
  ])
  server.on('GET /conversations/c-1', ({ query }) => {
    const version = Number(query.get('version') ?? 3)
    return {
      ...summary('c-1'),
      turns: [stored(version, version === 1 ? 'How long is history kept?' : QUESTION)],
    }
  })
  await click(screen.getByRole('button', { name: 'Earlier version' }))
  await shows('2/3')
  await click(screen.getByRole('button', { name: 'Earlier version' }))
  await shows('1/3')
  expect(texts('.question-text')).toEqual(['How long is history kept?'])
  await click(screen.getByRole('button', { name: 'Later version' }))
  await shows(QUESTION, '.question-text')
})

test('lists conversations, and opens, renames and deletes them', async () => {
  const server = withConversation(sampleServer(), 'c-1')
    .on('PATCH /conversations/c-1', ({ body }) => {
      const renamed = { ...summary('c-1'), ...body }
      server.on('GET /conversations', { conversations: [renamed] })
      return renamed
    })
    .on('DELETE /conversations/c-1', () => {
      server.on('GET /conversations', { conversations: [] })
      return { id: 'c-1' }
    })
  await openTab(server)
  const recent = within(await screen.findByRole('region', { name: 'Recent' }))
  // Visitors' are on a page of their own.
  await waitFor(() => expect(server.askedFor('GET /conversations')[0]?.query.get('mine')).toBe('true'))
  await click(await recent.findByRole('button', { name: `Rename ${QUESTION}` }))
  await enter(await recent.findByLabelText('Title'), ' Errors of imports ')
  await click(await recent.findByRole('link', { name: 'Errors of imports' }))
  expect(server.askedFor('PATCH /conversations/c-1').map(({ body }) => body)).toEqual([
    { title: 'Errors of imports' },
  ])
  await shows(QUESTION, '.question-text')
  expect(address()).toBe('c-1')
  expect(texts('.recent-item.current')).toEqual(['Errors of imports'])
  await click(screen.getByRole('button', { name: 'New conversation' }))
  await screen.findByRole('heading', { name: 'Ask your documents', level: 2 })
  await click(recent.getByRole('link', { name: 'Errors of imports' }))
  await shows(QUESTION, '.question-text')
  await click(recent.getByRole('button', { name: 'Delete Errors of imports' }))
  await click(
    within(await screen.findByRole('dialog', { name: 'Delete this conversation?' })).getByRole('button', {
      name: 'Delete',
    }),
  )
  await screen.findByRole('heading', { name: 'Ask your documents', level: 2 })
  await waitFor(() => expect(screen.queryByRole('link', { name: 'Errors of imports' })).toBe(null))
  expect(address()).toBe('')
})

test('goes on with an answer while another page is looked at', async () => {
  const gate = Promise.withResolvers<void>()
  const server = asking()
    .on('GET /conversations', { conversations: [summary('c-1')] })
    .on('POST /conversations', ({ body }) =>
      server.turn('c-1', 1, answered('c-1', body.question), { 2: gate.promise }),
    )
  await openTab(server)
  await enter(await screen.findByLabelText('Your question'), QUESTION)
  await waitFor(() => expect(address()).toBe('c-1'))
  go('/nowhere')
  await screen.findByRole('heading', { name: 'There is nothing at this address' })
  gate.resolve()
  await click(screen.getByRole('link', { name: QUESTION }))
  await shows('Answered by')
  await waitFor(() => expect(texts('.question-text')).toEqual([QUESTION]))
})

test('says in plain words why a question was not answered, and asks it again', async () => {
  const server = asking().on('POST /conversations', () => failure(429, 'Too many requests'))
  await openTab(server)
  await enter(await screen.findByLabelText('Your question'), QUESTION)
  await shows('Too many questions at once.', '.problem')
  await expectSound('failed')
  server.on('POST /conversations', ({ body }) => server.turn('c-1', 1, answered('c-1', body.question)))
  await click(document.querySelector('.retry')!)
  await shows(ANSWER.split('.')[0]!, `${ENDED} .prose`)
})

test('says so where a conversation cannot be shown', async () => {
  const server = sampleServer()
    .on('GET /conversations/c-0', () => failure(404, 'Not found.'))
    .on('GET /conversations/c-0/events', () => failure(404, 'There is no conversation `c-0`.'))
  await openTab(server, 'c-0')
  await screen.findByRole('heading', { name: 'This conversation cannot be shown' })
})

test('asks what its address names, and keeps to it in its tab', async () => {
  const server = asking().on('POST /a/help/conversations', ({ body }) =>
    server.turn('c-1', 1, answered('c-1', body.question)),
  )
  await openTab(server, '', { query: '?assistant=help' })
  await shows('You are asking the assistant help')
  await click(screen.getByRole('button', { name: 'Settings' }))
  const dialog = within(await screen.findByRole('dialog', { name: 'Chat settings' }))
  expect(dialog.getByLabelText<HTMLSelectElement>('Ask').value).toBe('help')
  await click(dialog.getByLabelText('Suggest what to ask next'))
  await expectSound('settings')
  await click(dialog.getByRole('button', { name: 'Apply' }))
  await click(await screen.findByRole('button', { name: QUESTION }))
  await shows('Answered by')
  expect(server.askedFor('POST /a/help/conversations').map(({ body }) => body)).toEqual([
    { question: QUESTION, followups: true },
  ])
})

test('takes what there is where nobody has chosen', async () => {
  const server = asking().on('GET /conversations/models', [model('other')])
  await openTab(server)
  await click(await screen.findByRole('button', { name: QUESTION }))
  await shows('Answered by')
  expect(server.askedFor('POST /conversations')[0]?.body).toMatchObject({
    model: 'other',
    collections: ['docs'],
  })
})

test('asks for a key where the server refuses the one it has, and takes one that is good', async () => {
  const server = sampleServer()
  server.instead = ({ key }) => (key === 'good' ? undefined : failure(401, 'Forbidden'))
  await openTab(server)
  const field = await screen.findByLabelText('API key')
  await shows('The API key was refused.', '[role=alert]')
  await expectSound('key')
  await enter(field, 'bad')
  await click(screen.getByRole('button', { name: 'Open the console' }))
  await shows('The API key was refused.', '[role=alert]')
  await enter(field, 'good')
  await click(screen.getByRole('button', { name: 'Open the console' }))
  await screen.findByRole('button', { name: QUESTION })
  expect([sessionStorage.getItem('parley.key'), localStorage.getItem('parley.key')]).toEqual(['good', null])
  await click(screen.getByRole('button', { name: 'Switch key' }))
  await screen.findByLabelText('API key')
  expect(sessionStorage.getItem('parley.key')).toBe('')
})

test('has its menu behind a button on a phone, which Escape and an address close', async () => {
  await openTab(sampleServer(), '', { phone: true })
  const menu = await screen.findByRole('complementary', { name: 'Menu' })
  await waitFor(() => expect(menu.hasAttribute('inert')).toBe(true))
  await click(screen.getByRole('button', { name: 'Open the menu' }))
  await waitFor(() => expect(menu.hasAttribute('inert')).toBe(false))
  await expectSound('menu')
  fireEvent.keyDown(menu, { key: 'Escape' })
  await waitFor(() => expect(menu.hasAttribute('inert')).toBe(true))
  await click(screen.getByRole('button', { name: 'Open the menu' }))
  await click(within(menu).getByRole('link', { name: 'Keys' }))
  await screen.findByRole('heading', { name: 'Keys', level: 1 })
  await waitFor(() => expect(menu.hasAttribute('inert')).toBe(true))
})
