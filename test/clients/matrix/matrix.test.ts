/** What each client can do with Parley, and why it cannot do the rest: the table of docs/clients.md. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Counterpart, startCounterpart } from '../counterpart'
import { createAssistant, createModel, createShows, request, unique } from '../harness'
import { type Llm, startLlm } from '../llm'
import { type Paced, startPaced, words } from '../paced'
import { Table } from '../providers/table'
import { COLUMNS, type Column, type Row } from './row'
import { ROWS } from './rows'
import { snippet } from './widget-rows'

/** Three seconds of writing. */
const [WORDS, GAP] = [120, 25]
/** Ten seconds: an answer that is still being written when somebody comes back to it, however busy the machine is. */
const MANY = 400

let llm: Llm
let paced: Paced
let counterpart: Counterpart
let pageKey = ''
let assistant: string
let slow: string
let long: string
let cut: string
/** answers with citations of a document that has an address */
let citing: string

beforeAll(async () => {
  llm = await startLlm({ latency: 5 })
  paced = await startPaced()
  counterpart = await startCounterpart()
  const shows = await createShows()
  const made = async (model: Record<string, unknown>) =>
    createAssistant({ model: await createModel(model), collections: [shows] })
  assistant = await made({ model_name: 'openai/gpt-4o-mini', openai_url: llm.url })
  slow = await made({ model_name: `openai/paced-${WORDS}-${GAP}`, openai_url: paced.url })
  long = await made({ model_name: `openai/paced-${MANY}-${GAP}`, openai_url: paced.url })
  cut = await made({ model_name: 'openai/cut', openai_url: counterpart.url })
  const pages = unique('pages')
  await request('POST', '/collections', { name: pages, fields: [{ name: 'text', type: 'string' }] })
  await request('POST', `/collections/${pages}/documents`, {
    id: 'quest',
    title: 'Galactic Quest',
    text: 'The pilots win the galactic quest.',
    url: 'https://example.org/quest',
  })
  citing = await createAssistant({
    model: await createModel({ model_name: 'local/extractive' }),
    collections: [pages],
  })
  const { body } = await request('POST', '/keys', {
    description: 'a page',
    actions: ['documents:search'],
    collections: [shows],
    limits: { allowed_origins: ['http://localhost:3000'] },
  })
  expect(body.value).toBeTypeOf('string')
  pageKey = body.value
})
afterAll(() => Promise.all([llm.stop(), paced.stop(), counterpart.stop()]))

const rows: Row[] = [...ROWS, snippet(() => pageKey)]
const table = new Table(
  rows.map(({ name }) => name),
  [...COLUMNS],
  'Client',
)
/** Why a cell cannot be, or what to know of one that holds. */
const noteOf = ({ lacks, notes }: Row, column: Column) => lacks?.[column] ?? notes?.[column]
/** All of them, in the order of their numbers: as the table is read. */
const reasons = [...new Set(rows.flatMap((row) => COLUMNS.flatMap((column) => noteOf(row, column) ?? [])))]

/** Begins an answer, waits until it is being written, and leaves. */
async function leave(chat: ReturnType<Row['open']>): Promise<void> {
  const gone = new AbortController()
  let seen = ''
  const asked = chat.ask(unique('an action series'), {
    signal: gone.signal,
    onText: (piece) => {
      seen += piece
    },
  })
  const ended = asked.catch(() => undefined)
  await vi.waitUntil(() => seen.length > 0, { timeout: 20_000 })
  gone.abort()
  await ended
}

/** Sets a cell of the table, which a test has proven or a client cannot have. */
function setCell(row: Row, column: Column): void {
  const note = noteOf(row, column)
  const cell = row.lacks?.[column] === undefined ? 'yes' : 'no'
  table.set(row.name, column, note === undefined ? cell : `${cell} (${reasons.indexOf(note) + 1})`)
}

const runs = ({ rare }: Row) => process.env.FULL || !rare
for (const row of rows) if (!runs(row)) for (const column of COLUMNS) setCell(row, column)

// Most of a test waits for words. A few wait at the same time: no client shares a conversation with another.
describe.concurrent.each(rows.filter(runs).map((row) => [row.name, row] as const))('%s', (_, row) => {
  /** A test whose success is a cell of the table. */
  const proves = (column: Column, body: () => Promise<void>) => {
    const lack = row.lacks?.[column]
    test(lack === undefined ? column : `${column}: ${lack}`, async () => {
      if (lack === undefined) await body()
      setCell(row, column)
    })
  }

  proves('Ask', async () => {
    const chat = row.open(assistant)
    const question = unique('an action series')
    const answer = chat.whole ? await chat.whole(question) : (await chat.ask(question)).text
    expect(answer).toBe(`You asked: ${question}`)
  })

  proves('Stream', async () => {
    const pieces: string[] = []
    const { text } = await row.open(slow).ask(unique('an action series'), {
      onText: (piece) => pieces.push(piece),
    })
    expect(text).toBe(words(WORDS).join(''))
    expect(pieces.join('')).toBe(text)
    expect(pieces.length).toBeGreaterThan(3)
  })

  proves('Follow-up', async () => {
    const chat = row.open(assistant)
    await chat.ask(unique('an action series'))
    const question = unique('and another')
    expect((await chat.ask(question)).text).toBe(`You asked: standalone: ${question}`)
  })

  proves('Error', async () => {
    await expect(row.open('no-such-assistant').ask('anything')).rejects.toThrow()
    const failure = row.open(cut).ask(unique('an action series'))
    await expect(failure).rejects.toThrow(/./)
  })

  proves('Abort', async () => {
    const chat = row.open(slow)
    await leave(chat)
    const { text } = await chat.ask(unique('another one'))
    expect(text).toBe(words(WORDS).join(''))
  })

  proves('Resume', async () => {
    const chat = row.open(long)
    await leave(chat)
    expect(await chat.resume!()).toBe(words(MANY).join(''))
  })

  proves('Sources', async () => {
    const [asked, question] = row.citesOnly
      ? [citing, 'Which quest do pilots win?']
      : [assistant, unique('an action series')]
    const { sources } = await row.open(asked).ask(question)
    // By its title, or by its id: `quest`.
    expect(sources.join()).toMatch(/quest/i)
  })
})

const FILE = join(import.meta.dirname, '../../../docs/clients.md')
const BEGIN = '<!-- clients: written by `npm run clients` -->'
const END = '<!-- /clients -->'

test('the documentation has this table', () => {
  const text = readFileSync(FILE, 'utf8')
  const notes = reasons.map((reason, at) => `${at + 1}. ${reason[0]!.toUpperCase()}${reason.slice(1)}.`)
  const written = [String(table), notes.join('\n')].join('\n\n')
  const [begin, end] = [text.indexOf(BEGIN) + BEGIN.length, text.indexOf(END)]
  if (process.env.CLIENTS === 'write') {
    writeFileSync(FILE, `${text.slice(0, begin)}\n\n${written}\n\n${text.slice(end)}`)
  } else expect(text.slice(begin, end).trim()).toBe(written)
})
