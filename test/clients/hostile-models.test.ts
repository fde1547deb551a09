/**
 * A provider that streams as fast as it can, or for ever: everybody else is served meanwhile, and its turn ends.
 *
 * No time is measured. Others are asked while the hostile turn runs, and what they got by its end is counted.
 */
import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RawServer, startRawServer } from '../models/raw-server'
import { connect, gather, textOf } from './event-source'
import { ask, createHistory, createModel, createShows, url } from './harness'
import { type Paced, startPaced, words } from './paced'

const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`

const ANSWER = `${chunk({ content: 'The end.' })}${chunk({}, 'stop')}data: [DONE]\n\n`

/** Pieces that a hostile provider writes at full speed, 64 KB at a time. */
const FLOODS: Record<string, string> = {
  newlines: '\n',
  comments: ': still here\n\n',
  'empty chunks': chunk({ content: '' }),
  'chunks without choices': 'data: {}\n\n',
  thoughts: chunk({ reasoning_content: 'hm ' }),
  tokens: chunk({ content: 'token ' }),
}

const FLOOD_BYTES = (process.env.FULL ? 24 : 10) * 1024 * 1024
/** Bytes after which there is a word in between: below what a call may send without content. */
const WORD_AFTER = 4 * 1024 * 1024

let raw: RawServer
let paced: Paced
let shows: string
let history: string
/** what the hostile provider does to the next answer */
let hostile: (response: ServerResponse) => void | Promise<void>

async function write(response: ServerResponse, piece: string): Promise<void> {
  if (response.write(piece)) return
  await new Promise<void>((resolve) => {
    const go = () => {
      response.off('drain', go).off('close', go)
      resolve()
    }
    response.on('drain', go).on('close', go)
  })
}

const flood = (piece: string, bytes: number) => async (response: ServerResponse) => {
  const block = piece.repeat(Math.ceil(65_536 / piece.length))
  let silent = 0
  for (let sent = 0; sent < bytes && !response.destroyed; sent += block.length) {
    await write(response, block)
    silent += block.length
    if (silent < WORD_AFTER || bytes === Number.POSITIVE_INFINITY) continue
    await write(response, chunk({ content: 'And ' }))
    silent = 0
  }
  if (!response.destroyed) response.end(ANSWER)
}

/** whether the provider answers in one piece, whatever it is asked for */
let passesOverStream = false

beforeAll(async () => {
  raw = await startRawServer()
  raw.respond = async (response, { body }) => {
    const content = String((body.messages as { content: string }[]).at(-1)?.content)
    const streams = body.stream === true && !passesOverStream
    if (content === 'hello') {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ choices: [{ message: { content: 'Hi.' }, finish_reason: 'stop' }] }))
      return
    }
    response.writeHead(200, {
      'content-type': streams ? 'text/event-stream' : 'application/json',
    })
    await hostile(response)
  }
  paced = await startPaced()
  shows = await createShows()
  history = await createHistory()
})
afterAll(async () => {
  await raw.stop()
  await paced.stop()
})

const hostileModel = (more: Record<string, unknown> = {}): Promise<string> =>
  createModel({ model_name: 'openai/hostile', openai_url: raw.url, history_collection: history, ...more })

const stream = async (model: string, more: Record<string, unknown> = {}) =>
  gather(
    await connect('/conversations', {
      method: 'POST',
      body: { question: 'an action series', model, collections: [shows], ...more },
    }),
  )

/** Answers that come before a turn reads anything of its model, and after it. */
const FEW = 5

/** Asks for the server's health again and again while a turn runs. @returns how often it was told */
async function healthDuring(turn: Promise<unknown>): Promise<number> {
  let told = 0
  let running = true
  const over = () => {
    running = false
  }
  turn.then(over, over)
  while (running) {
    const response = await fetch(`${url}/health`)
    await response.arrayBuffer()
    expect(response.status).toBe(200)
    if (running) told += 1
  }
  return told
}

test.each(Object.entries(FLOODS))('%s at full speed leave their turn to others', async (name, piece) => {
  const model = await hostileModel()
  const calm = await createModel({
    model_name: 'openai/paced-20-5',
    openai_url: paced.url,
    history_collection: history,
  })
  hostile = flood(piece, FLOOD_BYTES)
  const flooded = stream(model)
  const [told, beside] = await Promise.all([healthDuring(flooded), stream(calm)])
  expect(told).toBeGreaterThan(FEW)
  expect(textOf(beside)).toBe(words(20).join(''))
  const last = (await flooded).at(-1)
  // More tokens than an answer may have, or the answer after all the noise.
  if (name === 'tokens') expect(last?.data.message).toMatch(/exceeds the maximum of 500000 characters/)
  else expect(last).toMatchObject({ event: 'done' })
})

test('a whole reply that is mostly white space leaves its turn to others', async () => {
  passesOverStream = true
  const model = await hostileModel()
  hostile = async (response) => {
    const block = ' '.repeat(65_536)
    for (let sent = 0; sent < 7 * 1024 * 1024; sent += block.length) await write(response, block)
    response.end(JSON.stringify({ choices: [{ message: { content: 'The end.' }, finish_reason: 'stop' }] }))
  }
  const asked = ask(model, shows)
  expect(await healthDuring(asked)).toBeGreaterThan(FEW)
  expect((await asked).body.answer).toBe('The end.')
  passesOverStream = false
})

test.each([
  ['newlines', '\n'],
  ['comments', ': still here\n\n'],
  ['empty chunks', chunk({ content: '' })],
])('%s without an end are no answer, and are not read for ever', async (_, piece) => {
  const model = await hostileModel()
  hostile = flood(piece, Number.POSITIVE_INFINITY)
  expect((await stream(model)).at(-1)).toMatchObject({
    event: 'error',
    data: { message: 'OpenAI API error: the stream has too many bytes for what it says' },
  })
})

test.each([
  ['comments', ': still here\n\n'],
  ['blank lines', '\n'],
  ['empty chunks', chunk({ content: '' })],
  ['blanks', chunk({ content: ' ' })],
])('%s now and then are no sign of life', async (_, piece) => {
  const model = await hostileModel({ timeout: 0.6 })
  hostile = (response) => {
    response.write(chunk({ content: 'Half an ' }))
    const timer = setInterval(() => response.write(piece), 50)
    response.once('close', () => clearInterval(timer))
  }
  const events = await stream(model)
  expect(textOf(events).trim()).toBe('Half an')
  expect(events.at(-1)).toMatchObject({ event: 'error', data: { message: 'OpenAI API timeout.' } })
})

test('thoughts are a sign of life', async () => {
  const model = await hostileModel({ timeout: 0.6 })
  hostile = (response) => {
    let thoughts = 0
    const timer = setInterval(() => {
      thoughts += 1
      if (thoughts < 20) return void response.write(chunk({ reasoning_content: 'hm' }))
      clearInterval(timer)
      response.end(ANSWER)
    }, 60)
  }
  expect(textOf(await stream(model))).toBe('The end.')
})
