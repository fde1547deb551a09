/**
 * Whatever happens in whatever order to documents, their provider, their schema and the object that holds them: in
 * the end each document has exactly the vector of its text by the model of its field.
 */
import { abortAllDurableObjects } from 'cloudflare:test'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { CollectionRpc } from '../../src/search/collection/handle'
import { InferenceUpstreamError } from '../models/workers-ai/errors'
import { BASE, changeTo, drained, newTitles, Provider, SMALL, summaryOf, vectorOf } from './embedding-stage'
import { exportAll, importAll } from './object'

const provider = new Provider()

/** Calls that wait, oldest first: each goes on with an answer, or fails with a code. */
type Held = ((code?: number) => void)[]

/** Has every call wait. A run has fewer of them than there are gates. */
function holdEach(): Held {
  const held: Held = []
  // A promise that an object makes must not be settled from outside of it, so they are made here.
  const gates = Array.from({ length: 1_000 }, () => Promise.withResolvers<number | undefined>())
  provider.before = async () => {
    const { promise, resolve } = gates.pop()!
    held.push(resolve)
    const code = await promise
    if (code !== undefined) throw new InferenceUpstreamError(code)
  }
  return held
}

interface World {
  object(): CollectionRpc
  held: Held
  /** the model that the field has been told to have */
  model: string
  documents: Map<string, { title: string; own?: number[] }>
}

type Action = (world: World) => Promise<unknown>

const id = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f')
const title = fc.constantFrom('orchid', 'tulip', 'rose', 'tulip and rose')

const named = (name: string, action: Action): Action => Object.assign(action, { toString: () => name })

const actions: fc.Arbitrary<Action> = fc.oneof(
  fc.tuple(fc.uniqueArray(id, { minLength: 1 }), title).map(([ids, words]) =>
    named(`upsert ${ids} ${words}`, async ({ object, documents }) => {
      const batch = ids.map((one) => ({ id: one, title: words }))
      const results = await importAll(object(), batch, { action: 'upsert' })
      expect(results.every(({ success }) => success)).toBe(true)
      // A vector of its owner's goes with the text that it came with.
      for (const one of ids) {
        const { own } = documents.get(one) ?? {}
        const kept = documents.get(one)?.title === words && own !== undefined
        documents.set(one, { title: words, ...(kept && { own }) })
      }
    }),
  ),
  id.map((one) =>
    named(`own vector ${one}`, async ({ object, documents, model }) => {
      const { replacing_embeddings: replacing } = await summaryOf(object())
      if (replacing !== undefined) return
      const own = vectorOf(`own ${one}`, model)
      const words = documents.get(one)?.title ?? 'owned'
      const [result] = await importAll(object(), [{ id: one, title: words, e: own }], { action: 'upsert' })
      if (result!.success) documents.set(one, { title: words, own })
    }),
  ),
  id.map((one) =>
    named(`remove ${one}`, async ({ object, documents }) => {
      await object().remove(one, true)
      documents.delete(one)
    }),
  ),
  fc.constant(
    named('answer', async ({ held }) => {
      held.shift()?.()
      await scheduler.wait(2)
    }),
  ),
  fc.constantFrom(3040, 3041, 3006).map((code) =>
    named(`fail ${code}`, async ({ held }) => {
      held.shift()?.(code)
      await scheduler.wait(2)
    }),
  ),
  fc.constantFrom(SMALL, BASE).map((model) =>
    named(`change to ${model}`, async (world) => {
      if (!(await world.object().alter(changeTo(model))).ok) return
      world.model = model
      for (const document of world.documents.values()) delete document.own
    }),
  ),
  fc.constant(named('alter', ({ object }) => object().alter({ metadata: { n: 1 } }))),
  fc.constant(
    named('crash', async ({ held }) => {
      // A dead object gets no answers (embedding-stage.ts, `abandon`).
      held.length = 0
      await abortAllDurableObjects()
    }),
  ),
)

it('every document ends with exactly its vector', { timeout: 120_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(actions, { maxLength: 30 }), async (steps) => {
      const held = holdEach()
      const { again } = await newTitles()
      const world: World = { object: again, held, model: SMALL, documents: new Map() }
      for (const step of steps) await step(world)

      provider.abandon()
      for (const answer of held) answer()
      // Whatever was refused or is resting is asked for once more; where a change is under way it is not allowed.
      await again().alter({ metadata: { n: 2 } })
      await drained(again())
      if (!(await again().alter({ metadata: { n: 3 } })).ok) throw new Error('a change is still under way')
      await drained(again())

      const summary = await summaryOf(again())
      for (const key of ['refused_embeddings', 'embedding_error', 'replacing_embeddings']) {
        expect(summary).not.toHaveProperty(key)
      }
      const found = (await exportAll(again())).map(({ id: one, title: words, e }) => [one, words, e])
      const expected = [...world.documents].map(([one, { title: words, own }]) => [
        one,
        words,
        own ?? vectorOf(words, world.model),
      ])
      expect(found.sort()).toEqual(expected.sort())
      await again().destroy()
    }),
    { numRuns: 50 },
  )
})
