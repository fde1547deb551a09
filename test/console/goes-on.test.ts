/** Conversations that began elsewhere, opened in the console: a follow-up goes to what they were asked with. */
import { expect, test } from 'vitest'
import {
  answered,
  assistant,
  collection,
  HISTORY,
  model,
  sampleServer,
  search,
  summary,
  traced,
  turn,
  withConversation,
} from './sample'
import { type FakeServer, reply } from './server'
import {
  address,
  click,
  enter,
  expectSound,
  openTab,
  screen,
  shows,
  texts,
  type,
  waitFor,
  within,
} from './tab'

const FIRST = 'What does a baguette cost?'
const NEXT = 'And a rye bread?'
const ANSWER = 'A rye bread costs five euros.'
const NOTE = '.chat-foot .note'

interface Began {
  /** of its last turn */
  trace?: { assistant?: string; searches?: object[] }
  protocol?: string
  assistants?: object[]
}

/** A server with the conversation `c-1` on it, which goes on at both routes. */
function serverOf({ trace = {}, protocol = 'parley', assistants = [] }: Began): FakeServer {
  const server = withConversation(sampleServer(), 'c-1', {
    turns: [turn(1, FIRST)],
    traces: [traced(1, FIRST, { searches: [search('shop')], ...trace })],
    model_id: 'baker',
    protocol,
  })
  server
    .on('GET /collections', [HISTORY, collection('docs'), collection('shop'), collection('notes')])
    .on('GET /conversations/models', [model('docs'), model('baker', { history_collection: 'baker_history' })])
    .on('GET /assistants', { assistants })
    .on('GET /conversations/c-1/trace', ({ query }) => ({
      id: 'c-1',
      turns: [traced(Number(query.get('turn')), FIRST, { searches: [search('shop')], ...trace })],
    }))
  for (const route of ['POST /conversations', 'POST /a/{assistant}/conversations'])
    server.on(route, ({ body }) => server.turn('c-1', 2, answered('c-1', body.question, ANSWER)))
  return server
}

const baker = (name: string, more: object = {}) =>
  assistant(name, { model: 'baker', collections: ['shop'], ...more })

async function open(server: FakeServer, said: string): Promise<void> {
  await openTab(server, 'c-1')
  await shows(said, NOTE)
}

/** Asks on. @returns where the question went: its path, and its body */
async function follow(server: FakeServer, question = NEXT) {
  await enter(screen.getByLabelText('Your question'), question)
  await shows('rye bread costs five', '.turn[aria-busy="false"] .prose')
  expect(address()).toBe('c-1')
  const { path, body } = server.asked.findLast(({ method }) => method === 'POST')!
  return { path, body }
}

test('one goes on with the assistant that it was asked through, whatever the tab asks itself', async () => {
  // On the wire of OpenAI an assistant is asked by the name of a model.
  const server = serverOf({ trace: { assistant: 'help' }, protocol: 'openai', assistants: [baker('help')] })
  await open(server, 'Asking the assistant help.')
  await expectSound('opened')
  const { path, body } = await follow(server)
  expect([path, body]).toEqual(['/a/help/conversations', { conversation_id: 'c-1', question: NEXT }])
  // The tab's own choice stays for what begins in it.
  await click(screen.getByRole('button', { name: 'New conversation' }))
  await shows('You are asking the collection docs')
  expect(texts(NOTE)).toEqual(['AI can make mistakes. Check important information.'])
})

test('one answers an edited question too, in place of the old one', async () => {
  const server = serverOf({ trace: { assistant: 'help' }, assistants: [baker('help')] })
  await open(server, 'Asking the assistant help.')
  await follow(server)
  await click(screen.getAllByRole('button', { name: 'Edit the question' }).at(-1)!)
  server.on('POST /a/{assistant}/conversations', ({ body }) =>
    server.turn('c-1', 3, answered('c-1', body.question, 'It is closed on Sunday.')),
  )
  const field = await screen.findByLabelText('Your edited question')
  await enter(field, 'Is the shop closed on Sunday?')
  await shows('It is closed on Sunday.', '.turn[aria-busy="false"] .prose')
  expect(texts('.question-text')).toEqual([FIRST, 'Is the shop closed on Sunday?'])
  expect(server.askedFor('POST /a/help/conversations').at(-1)?.body).toEqual({
    conversation_id: 'c-1',
    question: 'Is the shop closed on Sunday?',
    replaces: 2,
  })
})

test.each(['first', 'second'])(
  'the %s of two assistants of the same model and collection is told apart',
  async (name) => {
    const server = serverOf({ trace: { assistant: name }, assistants: [baker('first'), baker('second')] })
    await open(server, `Asking the assistant ${name}.`)
    expect((await follow(server)).path).toBe(`/a/${name}/conversations`)
  },
)

test('one goes on with its model, its collection and its filter', async () => {
  const searches = [search('shop', { filter_by: 'id:=prices', per_page: '4' })]
  const server = serverOf({ trace: { searches }, protocol: 'typesense', assistants: [baker('help')] })
  await open(server, 'Asking the collection shop with the model baker, at most 4 documents, only id:=prices.')
  const { path, body } = await follow(server)
  expect([path, body]).toEqual([
    '/conversations',
    {
      conversation_id: 'c-1',
      question: NEXT,
      model: 'baker',
      collections: ['shop'],
      per_page: 4,
      filter_by: 'id:=prices',
    },
  ])
})

test('one does not lose a filter to an assistant that has none', async () => {
  const searches = [search('shop', { filter_by: 'id:!=hours' })]
  const narrow = baker('narrow', {
    collections: undefined,
    searches: [{ collection: 'shop', filter_by: 'id:=prices' }],
  })
  const assistants = [baker('help'), JSON.parse(JSON.stringify(narrow))]
  const server = serverOf({ trace: { searches }, assistants })
  await open(server, 'Asking the collection shop with the model baker, only id:!=hours.')
  expect((await follow(server)).body).toMatchObject({ filter_by: 'id:!=hours' })
})

test('one goes on with each of its collections', async () => {
  const searches = [search('shop', { filter_by: 'id:=prices' }), search('notes')]
  const server = serverOf({ trace: { searches } })
  await open(server, 'Asking the collections shop, notes with the model baker, only id:=prices.')
  expect((await follow(server)).body).toMatchObject({
    model: 'baker',
    searches: [{ collection: 'shop', filter_by: 'id:=prices' }, { collection: 'notes' }],
  })
})

test('one gives way to a new one where somebody chooses another history, and says so before', async () => {
  const server = serverOf({})
  server.on('GET /conversations/models', [
    model('docs'),
    model('baker', { history_collection: 'baker_history' }),
    model('sibling', { history_collection: 'baker_history' }),
  ])
  await open(server, 'Asking the collection shop with the model baker.')
  await click(screen.getByRole('button', { name: 'Settings' }))
  const dialog = async () => within(await screen.findByRole('dialog', { name: 'Chat settings' }))
  const models = (await dialog()).getByLabelText<HTMLInputElement>('Conversation model')
  expect(models.value).toBe('baker')
  // A model with the same history goes on.
  await type(models, 'sibling')
  await click((await dialog()).getByRole('button', { name: 'Apply' }))
  await shows('with the model sibling', NOTE)
  expect((await follow(server)).body).toMatchObject({ conversation_id: 'c-1', model: 'sibling' })
  await click(screen.getByRole('button', { name: 'Settings' }))
  await type((await dialog()).getByLabelText('Conversation model'), 'docs')
  await shows('A new one begins.', 'dialog')
  await expectSound('settings that begin a conversation')
  await click((await dialog()).getByRole('button', { name: 'Apply in a new conversation' }))
  await screen.findByRole('heading', { name: 'Ask your documents', level: 2 })
  expect(address()).toBe('')
  server.on('POST /conversations', ({ body }) => server.turn('c-2', 1, answered('c-2', body.question)))
  server.on('GET /conversations/c-2/trace', { id: 'c-2', turns: [traced(1)] })
  await enter(screen.getByLabelText('Your question'), FIRST)
  await shows('Asking the collection shop with the model docs.', NOTE)
  await waitFor(() => expect(address()).toBe('c-2'))
  const { body } = server.askedFor('POST /conversations').at(-1)!
  expect([body.model, 'conversation_id' in body]).toEqual(['docs', false])
})

const GONE = { message: 'There is no such conversation.', code: 'unknown_conversation' }

test.each([
  [
    'is there',
    'This conversation cannot go on: its model',
    () => ({ ...summary('c-1'), turns: [turn(1, FIRST)] }),
  ],
  ['is gone', 'This conversation has expired.', () => reply(404, GONE)],
])('one that %s, but does not go on, says why', async (_, said, kept) => {
  const server = serverOf({})
  await open(server, 'Asking the collection shop')
  server.on('POST /conversations', () => reply(404, GONE))
  server.on('GET /conversations/c-1', kept)
  await enter(screen.getByLabelText('Your question'), NEXT)
  await shows(said, '.problem')
  expect(document.body.textContent?.includes('expired')).toBe(said.includes('expired'))
})
