/**
 * Streamed answers whose pieces the conversation's object writes, so that the Worker runs no JavaScript for each. The answers
 * are what the Worker would have written.
 */
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { interrupted } from '../../src/turn/errors'
import * as wording from '../../src/turn/wording'
import { asked, send, setRemoteStage, spoken } from './stage'

beforeAll(setRemoteStage)
afterEach(() => vi.restoreAllMocks())

const WORDS = ['alpha', 'beta', 'gamma', 'zeta', 'epsilon']

it.each(Object.entries(asked('Who directed Alien?', 'remote', true)))(
  '%s: its pieces after the first are written by the object, in order and once',
  async (_, sent) => {
    const written = vi.spyOn(wording, 'writePiece')
    const say = spoken()
    say(WORDS[0]!)
    const response = await send(sent)
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
