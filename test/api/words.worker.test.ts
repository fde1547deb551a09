/**
 * Streamed answers whose pieces the conversation's object writes, so that the Worker runs no JavaScript for each. The answers
 * are what the Worker would have written.
 */
import { abortAllDurableObjects } from 'cloudflare:test'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { interrupted } from '../../src/turn/errors'
import * as wording from '../../src/turn/events'
import { asked, type Sent, send, setRemoteStage, spoken } from './stage'

beforeAll(setRemoteStage)
afterEach(() => vi.restoreAllMocks())

/** Stands for the memory's id. */
const MEMORY = 'MEMORY'
const newMemory = async (): Promise<string> => {
  const made = await send({ path: '/_plugins/_ml/memory', body: {} })
  return ((await made.json()) as { memory_id: string }).memory_id
}

const WORDS = ['alpha', 'beta', 'gamma', 'zeta', 'epsilon']

/** A search of OpenSearch that is answered. */
const answered = (memory: Record<string, string>): Sent => ({
  path: '/films/_search',
  body: {
    query: { match: { text: 'alien' } },
    search_pipeline: {
      response_processors: [
        { retrieval_augmented_generation: { model_id: 'remote', context_field_list: ['text'] } },
      ],
    },
    ext: { generative_qa_parameters: { llm_question: 'Who is said to have made Alien?', ...memory } },
    stream: true,
  },
})

const wires: Record<string, Sent> = {
  ...asked('Who is said to have made Alien?', 'remote', true),
  OpenSearch: answered({}),
  'OpenSearch with a memory': answered({ memory_id: MEMORY }),
}

it.each(Object.entries(wires))(
  '%s: its pieces after the first are written by the object, in order and once',
  async (_, sent) => {
    const memory_id = await newMemory()
    const written = vi.spyOn(wording, 'writePiece')
    const say = spoken()
    say(WORDS[0]!)
    const response = await send(JSON.parse(JSON.stringify(sent).replace(MEMORY, memory_id)))
    const reader = response.body!.getReader()
    const decoder = new TextDecoder()
    let text = ''
    for (const word of WORDS) {
      if (word !== WORDS[0]) say(word)
      while (!text.includes(word)) text += decoder.decode((await reader.read()).value)
    }
    say(null)
    for (let read = await reader.read(); !read.done; read = await reader.read())
      text += decoder.decode(read.value)
    expect(written.mock.calls.map(([, piece]) => piece).join('')).toBe('beta gamma zeta epsilon ')
    const places = WORDS.map((word) => text.indexOf(word))
    expect(places).toEqual(places.toSorted((a, b) => a - b))
    expect(text).not.toContain(interrupted().message)
    const numbers = [...text.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number))
    expect(numbers).toEqual(numbers.map((_number, at) => at))
  },
)

it("a response's numbers rise also if its object dies after pieces that it wrote itself", async () => {
  const say = spoken()
  say('alpha')
  const response = await send(asked('Who directed Heat?', 'remote', true).responses!)
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  let text = ''
  for (const word of WORDS) {
    if (word !== 'alpha') say(word)
    while (!text.includes(word)) text += decoder.decode((await reader.read()).value)
  }
  await abortAllDurableObjects()
  for (let read = await reader.read(); !read.done; read = await reader.read())
    text += decoder.decode(read.value)
  expect(text).toContain('event: response.failed')
  const numbers = [...text.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number))
  expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a - b))
})
