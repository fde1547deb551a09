/**
 * Providers that send whatever they like: each call comes to its end, in an answer or in an error of the wire, and what
 * reaches the reader is what the provider said and nothing else.
 */
import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { ApiError } from '../../src/errors'
import type { Delta } from '../../src/models/language-model'
import { createLanguageModel } from '../../src/models/providers'
import { config, localEnv, request } from '../models/ask'
import { inPieces } from './pieces'
import { type Piece, PROVIDERS, type Provider, told } from './providers'

const CASES = Number(process.env.FUZZ_CASES) || 100
const PATIENCE = 30_000 + CASES * 20

const encoder = new TextEncoder()

/** JSON of any kind, and what catches those who trust its kind. */
const odd = fc.oneof(
  fc.json({ maxDepth: 2 }),
  fc.constantFrom(
    '-1',
    '1e999',
    '-1e999',
    '0.5',
    '1e300',
    'null',
    '""',
    '[]',
    '{}',
    '[null]',
    '"constructor"',
    '"__proto__"',
    '"toString"',
    '{"toString":1,"valueOf":1}',
    '{"length":1e9}',
    '[[{"text":{"toString":null}}]]',
    '{"__proto__":null}',
    '{"text":1,"message":{"toString":1}}',
    '{"message":"\\ud800","code":{"toString":1}}',
    '{broken',
    '',
  ),
)

afterEach(() => void vi.restoreAllMocks())

type Outcome = { deltas: Delta[]; error?: unknown }

/** Asks a provider that sends a body. @param more properties of the model */
async function askFor(
  { wire, model, binding }: Provider,
  body: ReadableStream<Uint8Array>,
  more: Record<string, unknown> = {},
): Promise<Outcome> {
  const fetched = vi
    .spyOn(globalThis, 'fetch')
    .mockImplementation(async () => new Response(body, { headers: { 'content-type': wire.type } }))
  const env = binding ? { ...localEnv, AI_BACKEND: 'workers-ai', AI: { run: async () => body } } : localEnv
  const deltas: Delta[] = []
  try {
    const asked = createLanguageModel(config({ ...model, ...more }), env as unknown as Cloudflare.Env)
    for await (const delta of asked.generate(request(), new AbortController().signal)) deltas.push(delta)
    return { deltas }
  } catch (error) {
    return { deltas, error }
  } finally {
    fetched.mockRestore()
  }
}

const bytesOf = (pieces: Piece[]): Uint8Array => {
  const parts = pieces.map((piece) => (typeof piece === 'string' ? encoder.encode(piece) : piece))
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

const textOf = (deltas: Delta[], type: 'text' | 'reasoning'): string =>
  deltas.map((delta) => (delta.type === type ? delta.text : '')).join('')

const FINISHES = ['stop', 'length', 'content_filter', 'other']

/** What holds of every call, whatever its provider sends. */
function requireSound({ label }: Provider, { deltas, error }: Outcome): void {
  for (const delta of deltas) {
    if (delta.type === 'usage') {
      for (const count of [delta.inputTokens, delta.outputTokens]) {
        expect(Number.isSafeInteger(count) && count >= 0, `${count} tokens`).toBe(true)
      }
    } else if (delta.type === 'finish') expect(FINISHES).toContain(delta.reason)
    else if (delta.type === 'text' || delta.type === 'reasoning') expect(typeof delta.text).toBe('string')
    else expect.fail(`an adapter says ${delta.type}`)
  }
  const finishes = deltas.filter(({ type }) => type === 'finish').length
  if (error === undefined) {
    expect([finishes, deltas.at(-1)?.type]).toEqual([1, 'finish'])
    expect(textOf(deltas, 'text')).not.toBe('')
    return
  }
  expect(finishes).toBe(0)
  if (!(error instanceof ApiError)) throw error
  expect(error.status).toBe(400)
  expect(error.confidential).toBe(true)
  // Typesense words a malformed reply of vLLM as OpenAI's.
  const malformed = `Got malformed response from ${label === 'vLLM' ? 'OpenAI' : label} API.`
  if (error.message !== malformed)
    expect(error.message).toMatch(new RegExp(`^${label} API (error: .|timeout)`))
}

const cuts = fc.array(fc.nat(1_000_000), { maxLength: 30 })

/** Words of an answer, of one to four bytes a letter, and thoughts, which are told by their letter. */
const spoken = fc.array(
  fc.oneof(
    {
      arbitrary: fc.stringMatching(/^[a-zé日🎬]{1,12}$/u).map((text) => ({ text, thought: false })),
      weight: 3,
    },
    { arbitrary: fc.stringMatching(/^Ω{1,6}$/u).map((text) => ({ text, thought: true })), weight: 1 },
  ),
  { maxLength: 8 },
)

const tag = fc.constantFrom('think', 'thinking', 'THINK')

/** How the stream comes to its end. */
const ending = fc.oneof(
  { arbitrary: fc.constant('whole' as const), weight: 4 },
  {
    arbitrary: fc.constantFrom('without its end', 'cut', 'broken', 'error', 'garbled'),
    weight: 5,
  },
)

describe.each(Object.entries(PROVIDERS))('%s', (_, provider) => {
  const { wire, noise, reasoning, error: errorEvent, event, slots, label } = provider

  test(
    'says what the provider said, whatever stands between it and however it ends',
    { timeout: PATIENCE },
    () =>
      fc.assert(
        fc.asyncProperty(
          spoken,
          tag,
          fc.array(fc.nat(200), { maxLength: 12 }),
          fc.array(fc.tuple(fc.nat(100), fc.nat(100), fc.boolean()), { maxLength: 10 }),
          ending,
          fc.nat(1_000_000),
          cuts,
          async (words, name, splits, between, ends, at, cuts) => {
            const said = words
              .map(({ text, thought }) => (thought ? `<${name}>${text}</${name}>` : text))
              .join('')
            const answer = words.map(({ text, thought }) => (thought ? '' : text)).join('')
            // A tag, or a letter of two units, may be cut anywhere.
            const edges = [...new Set([0, said.length, ...splits.map((split) => split % (said.length + 1))])]
            edges.sort((a, b) => a - b)
            const pieces: Piece[] = edges
              .slice(1)
              .map((edge, index) => wire.chunk(said.slice(edges[index], edge)))
            for (const [place, which, apart] of between) {
              const piece = apart && reasoning ? reasoning('Ω') : noise[which % noise.length]!
              pieces.splice(place % (pieces.length + 1), 0, piece)
            }
            const message = `no room for ${at}`
            if (ends === 'error') pieces.splice(at % (pieces.length + 1), 0, errorEvent(message))
            if (ends === 'garbled') pieces.splice(at % (pieces.length + 1), 0, event('{"broken: §', ''))
            const whole = [...wire.begin, ...pieces, ...(ends === 'without its end' ? [] : wire.end)]
            const bytes = bytesOf(whole)
            const isCut = ends === 'cut' || ends === 'broken'
            const body = inPieces(
              isCut ? bytes.slice(0, at % bytes.length) : bytes,
              cuts,
              ends === 'broken' ? new Error('connection reset: §') : undefined,
            )
            const outcome = await askFor(provider, body)
            requireSound(provider, outcome)
            const { deltas, error } = outcome
            const text = textOf(deltas, 'text')
            expect(text).toBe(answer.slice(0, text.length))
            expect(textOf(deltas, 'reasoning')).toMatch(/^Ω*$/)
            if (error === undefined) expect(text).toBe(answer)
            else expect((error as Error).message).not.toContain('§')
            if (ends === 'whole') expect(error === undefined).toBe(answer !== '')
            if (['without its end', 'error', 'garbled'].includes(ends)) expect(error).toBeDefined()
            if (ends === 'error')
              expect((error as Error).message).toBe(`${label} API error: ${told(provider, message)}`)
          },
        ),
        { numRuns: CASES },
      ),
  )

  test('takes events of any shape', { timeout: PATIENCE }, () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom(...slots), odd), { maxLength: 6 }),
        fc.boolean(),
        cuts,
        async (events, speaks, cuts) => {
          const pieces = events.map(([[kind, body], json]) => event(body(json), kind))
          const chunks = speaks ? [wire.chunk('so ')] : []
          const bytes = bytesOf([...wire.begin, ...chunks, ...pieces, ...wire.end])
          requireSound(provider, await askFor(provider, inPieces(bytes, cuts)))
        },
      ),
      { numRuns: CASES },
    ),
  )

  test('reads bytes of any kind to their end', { timeout: PATIENCE }, () =>
    fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), fc.nat(100), cuts, async (junk, place, cuts) => {
        const before = bytesOf([...wire.begin, wire.chunk('so '), wire.chunk('on')])
        const at = place % before.length
        const bytes = bytesOf([before.slice(0, at), junk, before.slice(at), ...wire.end])
        requireSound(provider, await askFor(provider, inPieces(bytes, cuts)))
      }),
      { numRuns: CASES },
    ),
  )

  test('is not waited for when it goes on without a word', { timeout: PATIENCE }, () =>
    fc.assert(
      fc.asyncProperty(fc.array(fc.nat(100), { maxLength: 3 }), fc.boolean(), async (which, speaks) => {
        const pieces = [
          ...wire.begin,
          ...(speaks ? [wire.chunk('so ')] : []),
          ...which.map((one) => noise[one % noise.length]!),
        ]
        const waiting = pieces.map((piece) => bytesOf([piece]))
        const body = new ReadableStream<Uint8Array>({
          pull(controller) {
            const piece = waiting.shift()
            if (piece) controller.enqueue(piece)
            else return new Promise(() => {})
          },
        })
        const outcome = await askFor(provider, body, { timeout: 0.02 })
        requireSound(provider, outcome)
        expect((outcome.error as Error).message).toBe(`${label} API timeout.`)
      }),
      { numRuns: Math.min(CASES, 10) },
    ),
  )

  test.each([
    ['one event', (): Piece[] => [event(`{"odd":"${'x'.repeat(5 * 1024 * 1024)}"}`, 'odd')]],
    [
      'events that say nothing',
      (): Piece[] => Array(9).fill(event(`{"type":"odd","x":"${' '.repeat(1024 * 1024)}"}`, 'odd')),
    ],
  ])('is not read on when it is too large: %s', async (_, large) => {
    const bytes = bytesOf([...wire.begin, wire.chunk('so '), ...large(), wire.chunk('on'), ...wire.end])
    const everywhere = Array.from({ length: 200 }, (_, index) => index * 65_536)
    const outcome = await askFor(provider, inPieces(bytes, everywhere))
    requireSound(provider, outcome)
    expect(outcome.error).toBeDefined()
    expect('so '.startsWith(textOf(outcome.deltas, 'text'))).toBe(true)
  })
})
