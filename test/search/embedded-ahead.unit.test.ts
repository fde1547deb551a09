import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { EmbeddingModel } from '../../src/models/embedding-model'
import { EmbeddedAhead } from '../../src/search/run/embedded-ahead'

const LIMITS = { timeoutMs: 1_000, attempts: 1 }

const modelOf = (embed: EmbeddingModel['embed']) => ({ name: 'openai/any', batchSize: 10, embed })

const working = () => modelOf(vi.fn(async (texts: string[]) => texts.map(() => new Float32Array([1, 2]))))

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

it('embeds a text once, for all searches of the next seconds with the same model', async () => {
  const ahead = new EmbeddedAhead()
  const model = working()
  await Promise.all([ahead.begin(model, ['why'], LIMITS), ahead.begin(model, ['why'], LIMITS)])
  expect(model.embed).toHaveBeenCalledExactlyOnceWith(['why'], 'query', LIMITS)
  expect(await ahead.find(model, ['why'])).toEqual([new Float32Array([1, 2])])
  expect(ahead.find(model, ['how'])).toBeUndefined()
  expect(ahead.find(working(), ['why'])).toBeUndefined()
  vi.advanceTimersByTime(3_600_000)
  expect(ahead.find(model, ['why'])).toBeUndefined()
})

it('keeps no failure', async () => {
  const ahead = new EmbeddedAhead()
  const model = modelOf(async () => {
    throw new Error('down')
  })
  const beginning = ahead.begin(model, ['why'], LIMITS)
  const shared = ahead.find(model, ['why'])
  await expect(shared).rejects.toThrow('down')
  await expect(beginning).rejects.toThrow('down')
  expect(ahead.find(model, ['why'])).toBeUndefined()
})

it('keeps the latest texts only', async () => {
  const ahead = new EmbeddedAhead()
  const model = working()
  const texts = Array.from({ length: 100 }, (_, at) => [`question ${at}`])
  for (const text of texts) await ahead.begin(model, text, LIMITS)
  const kept = texts.filter((text) => ahead.find(model, text) !== undefined)
  expect(kept.length).toBeLessThan(50)
  expect(kept).toEqual(texts.slice(-kept.length))
})
