/** The works of a collection's alarm: none holds up another, and each is asked again when it wants to be. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, it, vi } from 'vitest'
import { Alarm } from '../../src/durable/objects'
import { BackgroundWorks } from '../../src/search/collection/background'
import type { Background } from '../../src/search/work'

/** A work that answers with each of `answers` in turn and then has nothing left. */
function work(...answers: (number | Error | Promise<undefined>)[]): Background & { steps: number } {
  return {
    name: 'test',
    steps: 0,
    async step() {
      const answer = answers[this.steps++]
      if (answer instanceof Error) throw answer
      return answer
    },
  }
}

/** Runs works once, as an alarm does. @returns in how many milliseconds the next alarm rings, if it does */
async function ring(
  works: Background[],
  then?: (background: BackgroundWorks) => Promise<void>,
): Promise<number | undefined> {
  const object = env.COLLECTION.get(env.COLLECTION.idFromName(crypto.randomUUID()))
  return runInDurableObject(object, async (_, { storage }) => {
    const background = new BackgroundWorks(
      () => works,
      new Alarm(storage),
      () => false,
      { patience: 50, collection: () => 'facts' },
    )
    await background.run()
    await then?.(background)
    const at = await storage.getAlarm()
    await storage.deleteAlarm()
    return at === null ? undefined : at - Date.now()
  })
}

describe('background works', () => {
  it('take their steps until nothing is left, and then set no alarm', async () => {
    const works = [work(0, 0, 0), work()]
    expect(await ring(works)).toBeUndefined()
    expect(works.map(({ steps }) => steps)).toEqual([4, 1])
  })

  it('that want a part of a millisecond are not asked within the one that is over', async () => {
    vi.useFakeTimers({ now: 1_800_000_000_000, toFake: ['Date'] })
    try {
      expect(await ring([work(0.9), work(1.5)])).toBe(2)
      expect(await ring([work(1_500.25)])).toBe(1_501)
    } finally {
      vi.useRealTimers()
    }
  })

  it('leave the rest of a long work to the next alarm', async () => {
    const long = work(...Array.from({ length: 100 }, () => 0))
    expect(await ring([long])).toBeLessThanOrEqual(2)
    expect(long.steps).toBe(21)
  })

  it('ring for the first that wants to be asked again', async () => {
    const at = await ring([work(90_000), work(60_000), work()])
    expect(at).toBeGreaterThan(50_000)
    expect(at).toBeLessThanOrEqual(60_000)
  })

  it('rest for as long as they asked, whoever rings or kicks, unless all has changed', async () => {
    const resting = work(60_000)
    await ring([resting], async (background) => {
      await background.run()
      background.kick(resting)
      await scheduler.wait(0)
      expect(resting.steps).toBe(1)
      background.kick(resting, true)
      await scheduler.wait(0)
      expect(resting.steps).toBe(2)
    })
  })

  it('go on beside one that fails, which is asked again later and later', async () => {
    const logged = vi.spyOn(console, 'error').mockImplementation(() => {})
    const [failing, sound] = [work(new Error('no'), new Error('no'), 0), work(0, 0)]
    const at = await ring([failing, sound], async (background) => {
      background.kick(failing, true)
      await scheduler.wait(0)
    })
    expect(at).toBeGreaterThan(0)
    expect(at).toBeLessThanOrEqual(1_000)
    expect([failing.steps, sound.steps]).toEqual([2, 3])
    expect(JSON.parse(logged.mock.calls[0]![0])).toEqual({
      type: 'collection',
      ts: expect.any(String),
      collection: 'facts',
      event: 'background work failed: test',
      reason: expect.stringContaining('Error: no'),
    })
    logged.mockRestore()
  })

  it('go on beside one that hangs, which nobody begins twice', async () => {
    const hanging = work(new Promise<undefined>(() => {}))
    const sound = work(0, 0)
    const at = await ring([hanging, sound], (background) => background.run())
    expect(at).toBeGreaterThan(20_000)
    expect([hanging.steps, sound.steps]).toEqual([1, 4])
  })
})

describe('an alarm', () => {
  it('that could not be set is set the next time', async () => {
    vi.spyOn(console, 'error').mockReturnValue()
    const object = env.COLLECTION.get(env.COLLECTION.idFromName(crypto.randomUUID()))
    await runInDurableObject(object, async (_, { storage }) => {
      const alarm = new Alarm(storage)
      const broken = vi.spyOn(storage, 'setAlarm').mockRejectedValueOnce(new Error('out of reach'))
      alarm.within(60_000)
      await Promise.allSettled(broken.mock.results.map(({ value }) => value))
      alarm.within(90_000)
      expect(await storage.getAlarm()).toBeGreaterThan(Date.now() + 80_000)
      await storage.deleteAlarm()
    })
    vi.restoreAllMocks()
  })
})
