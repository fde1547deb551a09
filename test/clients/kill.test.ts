/**
 * The server is killed (SIGKILL) at random moments of streaming turns and imports. After each restart over the same
 * storage no acknowledged document and no finished turn is lost, none is there twice, and none is there by half.
 *
 * KILLS says how often, SEED where: the seed is printed.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { HISTORY_FIELDS } from '../history-schema'
import { KEY } from './harness'
import { OwnParley } from './own-parley'
import { type Paced, startPaced, words } from './paced'
import { random } from './random'

const KILLS = Number(process.env.KILLS ?? (process.env.FULL ? 5 : 2))
const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31))
const CONVERSATIONS = 4
const WORDS = 30
const ANSWER = words(WORDS).join('')
const DOCUMENTS_AN_IMPORT = 700
/** How long history and D1 may take to get what an object of a killed server still holds: its alarm sees to it. */
const CATCH_UP_MS = 60_000

let paced: Paced
let server: OwnParley

beforeAll(async () => {
  server = new OwnParley()
  paced = await startPaced()
  await server.boot()
  await api('POST', '/collections', { name: 'history', fields: HISTORY_FIELDS })
  await api('POST', '/collections', { name: 'shows', fields: [{ name: 'title', type: 'string' }] })
  await api('POST', '/collections/shows/documents', { title: 'An action series' })
  await api('POST', '/conversations/models', {
    id: 'model',
    model_name: `openai/paced-${WORDS}-8`,
    openai_url: paced.url,
    api_key: 'sk-1234567890',
    history_collection: 'history',
    max_bytes: 16_384,
  })
})
afterAll(async () => {
  await server.remove()
  await paced.stop()
})

const headers = { 'x-typesense-api-key': KEY }

async function api(method: string, path: string, body?: unknown): Promise<string> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const response = await fetch(server.url + path, {
    method,
    headers,
    ...(body !== undefined && { body: text }),
  })
  const answer = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${answer}`)
  return answer
}

/** Reads a body for as long as there is anybody to send it. @returns what came */
async function readUntilKilled(path: string, init: RequestInit, onText = (_: string) => {}): Promise<string> {
  let text = ''
  try {
    const response = await fetch(server.url + path, init)
    const decoder = new TextDecoder()
    for await (const bytes of response.body ?? []) {
      text += decoder.decode(bytes, { stream: true })
      onText(text)
    }
  } catch (error) {
    await server.requireDead(error)
  }
  return text
}

interface Question {
  text: string
  /** sent again with a retry, so that the turn is not asked for twice */
  idempotencyKey: string
  /** whether the client saw the last event of its turn */
  finished: boolean
}

interface Talk {
  id: string | undefined
  questions: Question[]
}

const talks: Talk[] = []
const imports: { name: string; acknowledged: number; sent: number }[] = []
let interrupted = 0

/** Asks, on Parley's own route or on Typesense's. Sets `finished` when the last event comes. */
async function askUntilKilled(talk: Talk, question: Question, viaTypesense: boolean): Promise<string> {
  const named = { ...headers, 'idempotency-key': question.idempotencyKey }
  if (viaTypesense) {
    const parameters = new URLSearchParams({
      q: question.text,
      query_by: 'title',
      conversation: 'true',
      conversation_stream: 'true',
      conversation_model_id: 'model',
      ...(talk.id !== undefined && { conversation_id: talk.id }),
    })
    const text = await readUntilKilled(`/collections/shows/documents/search?${parameters}`, {
      headers: named,
    })
    const last = /\ndata: \[DONE\]\n\ndata: ({[^\n]*})\n\n$/.exec(text)?.[1]
    if (last === undefined) return text
    const { conversation } = JSON.parse(last)
    expect(conversation.answer).toBe(ANSWER)
    talk.id ??= conversation.conversation_id
    question.finished = true
    return text
  }
  const text = await readUntilKilled('/conversations', {
    method: 'POST',
    headers: { ...named, accept: 'text/event-stream' },
    body: JSON.stringify({
      question: question.text,
      model: 'model',
      searches: [{ collection: 'shows', query_by: 'title' }],
      ...(talk.id !== undefined && { conversation_id: talk.id }),
    }),
  })
  const id = /"conversation_id":"([^"]+)"/.exec(text)?.[1]
  const done = /\nevent: done\ndata: ({[^\n]*})\n\n$/.exec(text)?.[1]
  if (done === undefined) return text
  expect(JSON.parse(done).answer).toBe(ANSWER)
  talk.id ??= id
  question.finished = true
  return text
}

let alive = false

/** One conversation after another, turn after turn, until the server is killed. */
async function converse(round: number, worker: number): Promise<void> {
  const next = random(SEED + round * CONVERSATIONS + worker)
  while (alive) {
    // Some conversations go on from before the last kill, others begin now.
    const mine = talks.filter((talk, index) => index % CONVERSATIONS === worker && talk.id !== undefined)
    const known = next() < 0.6 ? mine.at(-1) : undefined
    const talk = known ?? { id: undefined, questions: [] }
    if (!known) {
      while (talks.length % CONVERSATIONS !== worker) talks.push({ id: undefined, questions: [] })
      talks.push(talk)
    }
    const name = `action question ${round}-${worker}-${talks.length}-${talk.questions.length}`
    const question: Question = { text: name, idempotencyKey: crypto.randomUUID(), finished: false }
    talk.questions.push(question)
    await askUntilKilled(talk, question, worker % 2 === 0)
    // A turn that broke off while the server lives is a failure.
    if (!question.finished && alive)
      await server.requireDead(new Error(`the turn broke off: ${question.text}`))
  }
}

const documentOf = (name: string, number: number) => ({
  id: `${name}-${number}`,
  title: `common word${number} ${'padding '.repeat(number % 40)}end`,
  number,
})

async function makeCollection(name: string): Promise<void> {
  await api('POST', '/collections', {
    name,
    fields: [
      { name: 'title', type: 'string' },
      { name: 'number', type: 'int32', facet: true },
    ],
  })
}

/** Imports until the server is killed, counting the lines that were acknowledged. */
async function load(name: string): Promise<void> {
  const target = { name, acknowledged: 0, sent: 0 }
  imports.push(target)
  while (alive) {
    const begun = target.sent
    const lines = Array.from({ length: DOCUMENTS_AN_IMPORT }, (_, number) =>
      JSON.stringify(documentOf(name, begun + number)),
    )
    target.sent += DOCUMENTS_AN_IMPORT
    const text = await readUntilKilled(
      `/collections/${name}/documents/import`,
      { method: 'POST', headers, body: lines.join('\n') },
      (text) => {
        // The last line may be there by half.
        target.acknowledged = begun + text.split('\n').length - 1
      },
    )
    const results = text.split('\n')
    const last = results.at(-1) === '{"success":true}' ? results.length : results.length - 1
    target.acknowledged = begun + last
    expect(results.slice(0, last)).toEqual(Array(last).fill('{"success":true}'))
    if (last < DOCUMENTS_AN_IMPORT && alive) await server.requireDead(new Error('the import broke off'))
  }
}

const exported = async (name: string) =>
  (await api('GET', `/collections/${name}/documents/export`))
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

/** What was acknowledged is there; what is there was sent, is whole, is there once, and can be found. */
async function checkImport({ name, acknowledged, sent }: (typeof imports)[number]): Promise<void> {
  const documents = await exported(name)
  const context = `seed ${SEED}, ${name}`
  expect(documents.length, context).toBeGreaterThanOrEqual(acknowledged)
  expect(documents.length, context).toBeLessThanOrEqual(sent)
  // Sent in order, one import after the other: what is there is a beginning of what was sent.
  expect(documents, context).toEqual(documents.map((_, number) => documentOf(name, number)))
  expect(JSON.parse(await api('GET', `/collections/${name}`)).num_documents, context).toBe(documents.length)
  for (const search of ['q=common&query_by=title', 'q=*', 'q=*&filter_by=number:>=0']) {
    const { found } = JSON.parse(await api('GET', `/collections/${name}/documents/search?${search}`))
    expect(found, `${context}: ${search}`).toBe(documents.length)
  }
  if (documents.length > 0) {
    const number = documents.length - 1
    const reply = await api(
      'GET',
      `/collections/${name}/documents/search?q=word${number}&query_by=title&num_typos=0&prefix=false`,
    )
    expect(JSON.parse(reply).found, context).toBe(1)
  }
}

type Said = { conversation_id: string; role: string; message: string }

/** @returns the questions of history, by conversation, in order. @throws when a turn is not whole */
async function turnsOfHistory(): Promise<Map<string, string[]>> {
  const turns = new Map<string, string[]>()
  const said = Map.groupBy((await exported('history')) as Said[], ({ conversation_id }) => conversation_id)
  for (const [id, messages] of said) {
    const questions = messages.filter((_, index) => index % 2 === 0).map(({ message }) => message)
    expect(messages.map(({ role, message }) => [role, message])).toEqual(
      questions.flatMap((question) => [
        ['user', question],
        ['assistant', ANSWER],
      ]),
    )
    turns.set(id, questions)
  }
  return turns
}

/** Every finished turn once in history and once in D1, in order; and nothing that nobody asked. */
async function checkTurns(): Promise<void> {
  const context = `seed ${SEED}`
  const stored = await turnsOfHistory()
  const asked = new Set(talks.flatMap(({ questions }) => questions.map(({ text }) => text)))
  const all = [...stored.values()].flat()
  expect(new Set(all).size, `${context}: a turn twice`).toBe(all.length)
  for (const question of all) expect(asked, context).toContain(question)
  for (const { id, questions } of talks) {
    const finished = questions.filter((question) => question.finished).map(({ text }) => text)
    if (finished.length === 0) continue
    const here = stored.get(id ?? '') ?? []
    expect(
      here.filter((question) => finished.includes(question)),
      context,
    ).toEqual(finished)
  }
}

/** That D1 has the same turns. */
async function checkRecords(stored: Map<string, string[]>): Promise<void> {
  for (const [id, questions] of stored) {
    const { turns } = JSON.parse(await api('GET', `/conversations/${id}`))
    const recorded = turns.map(({ question, answer }: { question: string; answer: string }) => [
      question,
      answer,
    ])
    expect(recorded, `seed ${SEED}: conversation ${id}`).toEqual(
      questions.map((question) => [question, ANSWER]),
    )
  }
}

/** Asks again what was interrupted, as a client does that saw its stream break. */
async function retry(): Promise<void> {
  const unfinished = talks.flatMap((talk, index) =>
    talk.questions.filter(({ finished }) => !finished).map((question) => ({ talk, question, index })),
  )
  interrupted += unfinished.length
  for (const { talk, question, index } of unfinished) {
    const text = await askUntilKilled(talk, question, (index % CONVERSATIONS) % 2 === 0)
    expect(question.finished, `seed ${SEED}: ${question.text} ended with ${text.slice(-500)}`).toBe(true)
  }
}

test(`${KILLS} kills lose nothing that was acknowledged, and leave nothing by half`, {
  timeout: 60_000 + KILLS * 60_000,
}, async () => {
  console.log(`kill test: KILLS=${KILLS} SEED=${SEED}`)
  const moments = random(SEED)
  for (let round = 0; round < KILLS; round++) {
    await makeCollection(`import-${round}`)
    alive = true
    const work = [load(`import-${round}`)]
    for (let worker = 0; worker < CONVERSATIONS; worker++) work.push(converse(round, worker))
    const working = Promise.all(work)
    // Should the work fail, there is no point in waiting.
    await Promise.race([working, new Promise((resolve) => setTimeout(resolve, 50 + moments() * 1_500))])
    alive = false
    await server.kill()
    await working
    await server.boot()
    await checkImport(imports.at(-1)!)
    await checkTurns()
    await retry()
    await checkTurns()
  }
  await expect
    .poll(async () => checkRecords(await turnsOfHistory()).then(() => 'same', String), {
      timeout: CATCH_UP_MS,
      interval: 1_000,
    })
    .toBe('same')
  for (const one of imports) await checkImport(one)
  const turns = [...(await turnsOfHistory()).values()].flat().length
  const documents = imports.reduce((sum, { acknowledged }) => sum + acknowledged, 0)
  console.log(
    `kill test: ${turns} turns, ${interrupted} of them interrupted; ${documents} documents acknowledged`,
  )
  expect(turns).toBe(talks.flatMap(({ questions }) => questions).length)
})
