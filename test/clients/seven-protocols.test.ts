/**
 * A conversation begun through one protocol and continued through another, each with its real client: every ordered pair of the
 * seven with FULL, otherwise each with itself and with two others. The model is asked over HTTP, and what it was sent is looked at.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createHistory, createModel, createShows } from './harness'
import { type Llm, startLlm } from './llm'
import { ragPipeline, remoteModel } from './opensearch-api'
import { type Exchange, openSearch, type Protocol, sevenProtocols, typesense } from './seven-protocols'

const NAMES = [
  'Typesense',
  "Parley's own routes",
  'AI Chat Protocol',
  'UI message stream',
  'OpenAI chat completions',
  'OpenAI responses',
  'OpenSearch',
]
/** Protocols that show nothing of what was said: there the next prompt has to hold it. */
const UNREADABLE = ['AI Chat Protocol', 'UI message stream', 'OpenAI chat completions', 'OpenAI responses']

let llm: Llm
let protocols: Map<string, Protocol>
beforeAll(async () => {
  // It repeats the last word of the question that it knows.
  llm = await startLlm({ answer: (prompt) => `Noted ${[...prompt.matchAll(/word-\w+/g)].at(-1)}.` })
  protocols = new Map((await sevenProtocols(llm)).map((protocol) => [protocol.name, protocol]))
})
afterAll(() => llm.stop())

let count = 0
/** A question that no other test asks. */
const newQuestion = (): { question: string; answer: string } => {
  const word = `word-${Math.random().toString(36).slice(2, 10)}${count++}`
  return { question: `Which series is about ${word}?`, answer: `Noted ${word}.` }
}

/** Every text that the model was sent since the last look. */
const prompts = (): string => {
  const texts = llm.calls().flatMap(({ messages }) => messages.map(({ content }) => content))
  llm.forget()
  return JSON.stringify(texts)
}

test('the seven are those that are documented', () => {
  expect([...protocols.keys()]).toEqual(NAMES)
  expect(NAMES.filter((name) => protocols.get(name)!.read === undefined)).toEqual(UNREADABLE)
})

/** How far behind the one that begins is the one that continues. A conversation is the same whoever began it. */
const STEPS = process.env.FULL ? NAMES.keys() : [0, 1, 3]
const PAIRS = [...STEPS].flatMap((step) =>
  NAMES.map((begins, at) => [begins, NAMES[(at + step) % NAMES.length]!] as const),
)

test.each(PAIRS)('begun by %s, continued by %s', async (begins, continues) => {
  const [first, second] = [newQuestion(), newQuestion()]
  const own = protocols.get(begins)!
  const thread = own.open()
  expect(await thread.ask(first.question)).toBe(first.answer)
  prompts()

  const other = protocols.get(continues)!.open(thread.id)
  expect(await other.ask(second.question)).toBe(second.answer)
  expect(other.id).toBe(thread.id)
  const sent = prompts()
  expect(sent).toContain(first.question)
  expect(sent).toContain(first.answer)

  if (own.read !== undefined) {
    const said: Exchange[] = [first, second].map(({ question, answer }) => [question, answer])
    expect(await own.read(thread.id)).toEqual(said)
    return
  }
  const third = newQuestion()
  expect(await thread.ask(third.question)).toBe(third.answer)
  expect(await protocols.get("Parley's own routes")!.read!(thread.id)).toHaveLength(3)
  const read = prompts()
  for (const { question, answer } of [first, second]) {
    expect(read).toContain(question)
    expect(read).toContain(answer)
  }
})

test("a model behind a connector continues what lies in another model's history, and the other way round", async () => {
  const shows = await createShows()
  const history = await createHistory()
  const model = await createModel({
    model_name: 'openai/gpt-4o-mini',
    openai_url: llm.url,
    history_collection: history,
  })
  const remote = await remoteModel({ host: new URL(llm.url).host })
  const fields = { context_field_list: ['overview'], llm_model: 'gpt-4o' }
  const memory = openSearch(shows, await ragPipeline(remote, fields))
  const search = typesense(shows, model, history)
  const asked = [newQuestion(), newQuestion(), newQuestion()] as const
  const begun = search.open()
  await begun.ask(asked[0].question)
  prompts()
  await memory.open(begun.id).ask(asked[1].question)
  expect(prompts()).toContain(asked[0].answer)
  await begun.ask(asked[2].question)
  expect(prompts()).toContain(asked[1].answer)
  const said = asked.map(({ question, answer }) => [question, answer])
  expect(await search.read!(begun.id)).toEqual(said)
  expect(await memory.read!(begun.id)).toEqual(said)
})
