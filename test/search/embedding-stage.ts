/** Collections whose vectors the double of Workers AI makes, for tests of embedding in the background. */
import { env } from 'cloudflare:workers'
import { expect, vi } from 'vitest'
import { unwrap } from '../../src/errors'
import type { CollectionRpc } from '../../src/search/collection/handle'
import { shortest } from '../../src/search/vectors/packed-vectors'
import { bindWorkersAi } from '../models/workers-ai/bind'
import { CATALOGUE } from '../models/workers-ai/catalogue'
import { embed } from '../models/workers-ai/vectors'
import { type Call, WorkersAi } from '../models/workers-ai/workers-ai'
import { exportAll } from './object'

export const SMALL = '@cf/baai/bge-small-en-v1.5'
export const BASE = '@cf/baai/bge-base-en-v1.5'

export const embedding = (model = SMALL, from = ['title']) => ({
  name: 'e',
  type: 'float[]',
  embed: { from, model_config: { model_name: `cloudflare/${model}` } },
})

export const changeTo = (model: string) => ({ fields: [{ name: 'e', drop: true }, embedding(model)] })

/** The texts of a call. */
export const textsOf = ({ inputs }: Call): string[] => inputs.text as string[]

export class Provider {
  /** runs before a call is answered, and may fail it */
  before: (call: Call) => void | Promise<void> = () => {}
  readonly ai = new WorkersAi({ before: (call) => this.before(call) })
  #open: (() => void) | undefined

  constructor() {
    bindWorkersAi(this.ai)
  }

  /** Has calls wait from now on, those that ask for nothing of `texts` excepted, until `release`. */
  hold(concerns: (call: Call) => boolean = () => true): void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#open = resolve
    this.before = (call) => (concerns(call) ? promise : undefined)
  }

  release(): void {
    this.before = () => {}
    this.#open?.()
  }

  /**
   * Lets new calls through and leaves those that wait without an answer for ever: their object has died. Here its
   * code would go on all the same, in the context of another.
   */
  abandon(): void {
    this.before = () => {}
    this.#open = undefined
  }

  reset(): void {
    this.release()
    this.ai.calls.length = 0
  }

  /** Waits until so many calls have come in. */
  called(count: number): Promise<void> {
    return vi.waitFor(() => expect(this.ai.calls.length).toBeGreaterThanOrEqual(count), WAIT)
  }
}

const WAIT = { timeout: 20_000, interval: 10 }

/** A new collection of titles. `again` is another stub of it, as it is needed after its object has died. */
export async function newTitles(
  field = embedding(),
): Promise<{ object: CollectionRpc; again(): CollectionRpc }> {
  const id = env.COLLECTION.idFromName(crypto.randomUUID())
  // Stubs themselves, which tests look into.
  const again = () => env.COLLECTION.get(id) as unknown as CollectionRpc
  const object = again()
  const fields = [{ name: 'title', type: 'string' }, { name: 'n', type: 'int32', optional: true }, field]
  unwrap(await object.create({ name: 'titles', fields }, Math.floor(Date.now() / 1000)))
  return { object, again }
}

export const summaryOf = async (object: CollectionRpc): Promise<Record<string, unknown>> =>
  unwrap(await object.summary())

/** Waits until nothing is pending any more, and no field on its way to another model. */
export const drained = (object: CollectionRpc): Promise<void> =>
  vi.waitFor(async () => {
    const summary = await summaryOf(object)
    expect(summary).not.toHaveProperty('pending_embeddings')
    expect(summary).not.toHaveProperty('replacing_embeddings')
  }, WAIT)

/** What the double makes of a title, as an export shows it. */
export function vectorOf(title: string, model = SMALL): number[] {
  const { dimensions, tokens } = CATALOGUE[model] as { dimensions: number; tokens: number }
  return embed(`${title} `, dimensions, tokens, `${model} cls `).map((part) => shortest(Math.fround(part)))
}

/** Checks of each document that it has the vector of its title, and of those in `without` that they have none. */
export async function expectVectors(
  object: CollectionRpc,
  { model = SMALL, without = [] as string[] } = {},
): Promise<void> {
  for (const { id, title, e } of await exportAll(object)) {
    const expected = without.includes(id as string) ? undefined : vectorOf(title as string, model)
    expect(e, `document ${id}`).toEqual(expected)
  }
}

/** Titles found by a word, and titles found by their vectors. */
export async function found(object: CollectionRpc, params: Record<string, string>): Promise<string[]> {
  const result = unwrap(await object.search(params))
  return result.hits!.map(({ document }) => document.title as string)
}
