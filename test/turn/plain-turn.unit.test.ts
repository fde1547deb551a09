/** How a turn of a page's key ends whose model fails, before its answer or in the middle of it. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { ApiError } from '../../src/errors'
import type { Delta } from '../../src/models/language-model'
import { ProviderError } from '../../src/models/provider-error'
import { asking, makeWorld, ofType, take } from './world'

const DETAIL = 'OpenAI API error: the organisation org-123 of Ann is out of money'

let logged: string[] = []
beforeEach(() => {
  logged = []
  vi.spyOn(console, 'error').mockImplementation((...words) => void logged.push(words.join(' ')))
})
afterEach(() => vi.restoreAllMocks())

const breaking = (pieces: string[]) =>
  makeWorld({
    async *speak(): AsyncIterable<Delta> {
      for (const text of pieces) yield { type: 'text', text }
      throw new ProviderError(400, DETAIL, { upstream: 402 })
    },
  })

it.each([
  ['before its answer', []],
  ['in the middle of its answer', ['There ', 'once']],
])('%s it is told plainly, and the log has the rest under the reference', async (_, pieces) => {
  const [error] = ofType(await take(breaking(pieces), asking({ plain: true })), 'error')
  expect(error).toMatchObject({ status: 400, upstream: true })
  expect(error!.message).not.toContain('org-123')
  const reference = /reference ([\w-]{36})\./.exec(error!.message)?.[1]
  expect(JSON.parse(logged.at(-1)!)).toEqual({ type: 'failure', reference, status: 400, message: DETAIL })
  const [told] = ofType(await take(breaking(pieces), asking()), 'error')
  expect(told!.message).toBe(DETAIL)
})

it('what a caller can mend is told to every key', async () => {
  const world = makeWorld({ refuse: () => new ApiError(404, 'Could not find a field named `x`.') })
  const [error] = ofType(await take(world, asking({ plain: true })), 'error')
  expect(error).toMatchObject({ status: 404, message: 'Could not find a field named `x`.' })
  expect(logged).toEqual([])
})
