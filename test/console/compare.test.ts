/** The same question asked again with other settings, in the console, beside the first answer. */
import { expect, test } from 'vitest'
import {
  ANSWER,
  collection,
  QUESTION,
  sampleServer,
  search,
  summary,
  traced,
  turn,
  withConversation,
} from './sample'
import { failure } from './server'
import {
  address,
  click,
  expectSound,
  openTab,
  reload,
  screen,
  shows,
  texts,
  type,
  waitFor,
  within,
} from './tab'

const side = (name: string) => within(screen.getByRole('region', { name: `The ${name} answer` }))

test('a question is asked once more with other settings, and what differs is told', async () => {
  const hits = ['history', 'keys', 'tides'].map((id) => ({ id, score: 0.5 }))
  const server = withConversation(sampleServer(), 'c-1', {
    traces: [traced(1, QUESTION, { searches: [search('docs', {}, { hits, found: 3 })] })],
  })
  server.on('POST /conversations', {
    conversation_id: 'c-2',
    turn: 1,
    question: QUESTION,
    answer: ANSWER,
    finish_reason: 'stop',
    citations: [],
    usage: { model: 'local/extractive' },
    timings: { finished: 300 },
    results: [],
  })
  await openTab(server, 'c-1')
  await click(await screen.findByRole('link', { name: 'Compare' }))
  await screen.findByRole('heading', { name: QUESTION, level: 1 })
  await waitFor(() => side('first').getByText('3 documents matched. All of them fit into the prompt.'))
  await expectSound('one answer')
  await type(await side('second').findByLabelText('Documents per search'), '1')
  server
    .on('GET /conversations/c-2', {
      ...summary('c-2'),
      turns: [turn(1, QUESTION, { timings: { finished: 300 } })],
    })
    .on('GET /conversations/c-2/trace', { id: 'c-2', turns: [traced(1)] })
  await click(side('second').getByRole('button', { name: 'Ask again' }))
  const row = await screen.findByRole('row', { name: /Found only here/ })
  expect([...row.children].map((cell) => cell.textContent)).toEqual(['Found only here', 'keys, tides', '–'])
  expect(texts('.halves tbody tr').at(-1)).toBe('Time98 ms300 ms')
  expect(server.askedFor('POST /conversations').map(({ body }) => body)).toEqual([
    { question: QUESTION, model: 'docs', collections: ['docs'], per_page: 1 },
  ])
  await expectSound('two answers')
  expect(address()).toBe('/compare?a=c-1/1&b=c-2/1')
  await reload()
  await screen.findByRole('row', { name: /Found only here/ })
})

test('a follow-up is asked again as it was rewritten, since it is asked without what was said before', async () => {
  const standalone = 'How long is the history of Parley kept?'
  const server = withConversation(sampleServer(), 'c-1', { turns: [turn(2, 'How long?', { standalone })] })
  server.on('POST /conversations', () => failure(422, 'The model does not answer'))
  await openTab(server, '/compare?a=c-1/2')
  await screen.findByRole('heading', { name: standalone, level: 1 })
  await click(await side('second').findByRole('button', { name: 'Ask again' }))
  await shows('The model does not answer.', '[role=alert]')
  expect(server.askedFor('POST /conversations')[0]?.body.question).toBe(standalone)
})

test('an answer that is gone, and one whose trace may not be read, say so', async () => {
  const server = withConversation(sampleServer(), 'c-1').on('GET /conversations/c-1/trace', () =>
    failure(401, 'Forbidden'),
  )
  server.on('GET /collections', [collection('docs')])
  await openTab(server, '/compare?a=c-1/1&b=c-1/9')
  await shows('it lacks the action conversations:trace', '[aria-label="The first answer"]')
  await shows('This answer is not kept any more.', '[aria-label="The second answer"]')
})
