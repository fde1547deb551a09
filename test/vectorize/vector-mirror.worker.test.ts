import fc from 'fast-check'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import type { Fault } from './double'
import { direction, OBJECT_ID, SLOT, type Stage, withStage } from './stage'

let logged: string[] = []
beforeEach(() => {
  logged = []
  vi.spyOn(console, 'error').mockImplementation((line) => void logged.push(String(line)))
})

const putAll = (stage: Stage, count: number): void => {
  for (let seq = 0; seq < count; seq++) stage.put(seq, direction(seq))
}

describe('the mirror of vectors in Vectorize', () => {
  it('sends in batches, removes in batches, and knows when it is seen', async () => {
    await withStage(async (stage) => {
      putAll(stage, 1_200)
      expect(stage.waiting()).toBe(1_200)
      while ((await stage.mirror.send()) === 0);
      expect(stage.double.calls.upsert).toBe(3)
      await stage.mirror.look()
      expect([stage.waiting(), stage.double.visible.size]).toEqual([1_200, 0])
      stage.double.runJob(2)
      await stage.mirror.look()
      expect(stage.waiting()).toBe(200)
      await stage.settle()
      expect(stage.shown()).toEqual(stage.rows())
      for (let seq = 0; seq < 250; seq++) stage.remove(seq)
      await stage.settle()
      expect(stage.double.calls.deleteByIds).toBe(3)
      expect([...stage.shown().keys()]).toEqual([...stage.rows().keys()])
    })
  })

  it('sends a document once, whatever happened to it, and nothing that has not changed', async () => {
    await withStage(async (stage) => {
      stage.put(1, direction(1))
      stage.put(1, direction(2))
      stage.remove(1)
      stage.put(1, direction(3))
      await stage.settle()
      expect(stage.double.calls).toMatchObject({ upsert: 1, deleteByIds: 0 })
      stage.put(1, direction(3))
      stage.remove(77)
      expect(stage.waiting()).toBe(0)
    })
  })

  it('learns from describe alone what is processed when nobody else writes', async () => {
    await withStage(async (stage) => {
      putAll(stage, 3)
      await stage.mirror.send()
      stage.double.runJob()
      await stage.mirror.look()
      expect(stage.double.calls).toMatchObject({ describe: 1, getByIds: 0 })
      expect(stage.waiting()).toBe(0)
    })
  })

  it('learns from its own vectors what is processed when others write', async () => {
    await withStage(async (stage) => {
      putAll(stage, 3)
      await stage.mirror.send()
      await stage.double.upsert([{ id: 'of another', values: direction(9), namespace: 'another' }])
      stage.double.runJob()
      await stage.mirror.look()
      expect(stage.double.calls.getByIds).toBe(1)
      expect(stage.waiting()).toBe(0)
    })
  })

  it.each<Fault>(['refused', 'unanswered', 'dropped'])('loses nothing when a write is %s', async (fault) => {
    await withStage(async (stage) => {
      putAll(stage, 30)
      await stage.settle()
      stage.put(5, direction(500))
      stage.remove(6)
      stage.double.fail('upsert', fault)
      stage.double.fail('deleteByIds', fault)
      await stage.settle()
      expect(stage.shown()).toEqual(stage.rows())
    })
  })

  it('sends again what Vectorize has lost, not what it is slow to process', async () => {
    await withStage(async (stage) => {
      const sentBefore = (minutes: number) =>
        stage.sql.exec('UPDATE vector_mutations SET sent_at = ?', Date.now() - minutes * 60_000)
      stage.double.fail('upsert', 'dropped')
      putAll(stage, 3)
      await stage.mirror.send()
      sentBefore(300)
      // Half a minute and more between two looks, after all this time.
      expect(await stage.mirror.look()).toBe(60_000)
      await stage.double.upsert([{ id: 'of another', values: direction(9), namespace: 'another' }])
      stage.double.runJob()
      expect(await stage.mirror.look()).toBe(0)
      expect(await stage.mirror.send()).toBe(0)
      sentBefore(5)
      expect(await stage.mirror.look()).toBe(60_000)
      sentBefore(0)
      expect(await stage.mirror.look()).toBe(5_000)
      expect(stage.double.calls.upsert).toBe(3)
      sentBefore(400)
      expect(await stage.mirror.look()).toBe(0)
      await stage.settle()
      expect(stage.shown()).toEqual(stage.rows())
    })
  })

  it('waits longer after each failure, never the same time twice', async () => {
    await withStage(async (stage) => {
      putAll(stage, 2)
      stage.double.fail('upsert', 'refused', 'refused', 'refused')
      const waits = [await stage.mirror.send(), await stage.mirror.send(), await stage.mirror.send()]
      for (const [failures, wait] of waits.entries()) {
        expect(wait).toBeGreaterThanOrEqual(500 * 2 ** failures)
        expect(wait).toBeLessThan(1_000 * 2 ** failures)
      }
      expect(await stage.mirror.send()).toBe(0)
    })
  })

  it('names its collection in the log', async () => {
    await withStage(async (stage) => {
      putAll(stage, 2)
      stage.double.fail('upsert', 'refused')
      await stage.mirror.send()
      stage.double.fail('upsert', 'dropped')
      while ((await stage.mirror.send()) === 0);
      stage.sql.exec('UPDATE vector_mutations SET sent_at = 0')
      await stage.mirror.look()
      await stage.settle()
      const reconciler = stage.reconciler(2)
      stage.double.fail('getByIds', 'refused')
      await expect(reconciler.run('')).rejects.toThrow('Vectorize did not answer.')
      stage.double.tamper((stored) => stored.clear())
      await reconciler.work.step()
      stage.sql.exec("UPDATE meta SET value = '0' WHERE key = 'reconcile_at'")
      await reconciler.work.step()
      const lines = logged.map((line) => JSON.parse(line))
      expect(lines.map(({ event }) => event)).toEqual([
        'vectors could not be sent to Vectorize',
        expect.stringMatching(/^a mutation was lost by Vectorize and is sent again: ./),
        'vectors could not be compared with Vectorize',
        expect.stringMatching(/^vectors differed in Vectorize and are sent again: .*"missing":2/),
      ])
      for (const line of lines) expect(line).toMatchObject({ type: 'collection', collection: OBJECT_ID })
    })
  })

  it('is not held up by a vector that Vectorize will not take', async () => {
    await withStage(async (stage) => {
      putAll(stage, 40)
      stage.double.rejects = (id) => id.endsWith(':7')
      for (let step = 0; step < 100; step++) await stage.mirror.send()
      while (stage.double.runJob());
      await stage.mirror.look()
      expect(stage.waiting()).toBe(1)
      expect(stage.double.visible.size).toBe(39)
      stage.double.rejects = () => false
      await stage.settle()
      expect(stage.shown()).toEqual(stage.rows())
    })
  })

  it('keeps a vector without a direction out, where cosine has no place for it', async () => {
    await withStage(async (stage) => {
      putAll(stage, 2)
      await stage.settle()
      stage.put(1, new Float32Array(384))
      await stage.settle()
      expect([...stage.shown().keys()]).toEqual([0])
      expect(await stage.reconcile(2)).toMatchObject({ missing: 0, stale: 0, extra: 0 })
    })
  })

  it('sends what was there before Vectorize was, and again when it has been away', async () => {
    await withStage(async (stage) => {
      stage.wake('embedded')
      putAll(stage, 20)
      expect(stage.waiting()).toBe(0)
      stage.wake()
      await stage.settle()
      expect(stage.shown()).toEqual(stage.rows())
      stage.wake('embedded')
      stage.put(3, direction(300))
      stage.remove(4)
      stage.wake()
      await stage.settle()
      // The document that went meanwhile is found by comparing.
      expect(await stage.reconcile(20)).toMatchObject({ missing: 0, stale: 0, extra: 1 })
      await stage.settle()
      expect(stage.shown()).toEqual(stage.rows())
    })
  })

  it('removes a field that is dropped and all that is truncated', async () => {
    await withStage(async (stage) => {
      putAll(stage, 120)
      stage.addTable(2)
      const other = stage.indexOf(2)
      other.put(5, direction(5))
      await stage.settle()
      stage.mirror.retire(SLOT)
      stage.sql.exec(`DROP TABLE vectors_${SLOT}`)
      await stage.settle()
      expect([stage.shown().size, stage.shown(2).size]).toEqual([0, 1])
      other.clear()
      await stage.settle()
      expect(stage.double.visible.size).toBe(0)
    })
  })

  it('mends what is missing, stale or extra', async () => {
    await withStage(async (stage) => {
      putAll(stage, 50)
      await stage.settle()
      const [, second, third] = [...stage.double.visible.keys()]
      stage.double.tamper((stored) => {
        stored.delete(second!)
        stored.get(third!)!.values = direction(99)
      })
      stage.remove(40)
      await stage.settle()
      stage.double.plant(second!.replace(/\d+$/, '40'), 'anything', direction(40))
      stage.put(30, direction(31))
      expect(await stage.reconcile(50)).toEqual({ checked: 49, missing: 1, stale: 1, extra: 1, waiting: 1 })
      await stage.settle()
      expect(stage.shown()).toEqual(stage.rows())
      expect(await stage.reconcile(50)).toEqual({ checked: 50, missing: 0, stale: 0, extra: 0, waiting: 0 })
    })
  })

  it('compares slowly by itself, from the hour after it began, and forgets fields that are gone', async () => {
    await withStage(async (stage) => {
      const hour = 3_600_000
      putAll(stage, 250)
      await stage.settle()
      const { work } = stage.reconciler(250)
      const passes = () => stage.sql.exec("UPDATE meta SET value = '0' WHERE key = 'reconcile_at'")
      expect(await work.step()).toBe(hour)
      expect(await work.step()).toBeLessThanOrEqual(hour)
      expect(stage.double.calls.getByIds).toBe(0)
      const id = [...stage.double.visible.keys()][230]!
      stage.double.tamper((stored) => stored.delete(id))
      passes()
      expect(await work.step()).toBe(hour)
      expect([stage.double.calls.getByIds, stage.waiting()]).toEqual([10, 0])
      passes()
      expect(await work.step()).toBe(7 * 24 * hour)
      expect(stage.waiting()).toBe(1)
      stage.mirror.retire(SLOT)
      await stage.settle()
      for (let slice = 0; slice < 2; slice++) {
        passes()
        await work.step()
      }
      expect(stage.mirror.outbox.fields()).toEqual([])
      expect(await work.step()).toBeUndefined()
    })
  })

  it.each<[string, Fault[]]>([
    ['by itself, where Vectorize keeps what it has taken', ['refused', 'unanswered']],
    ['once compared, where it does not', ['refused', 'unanswered', 'dropped']],
  ])('holds the same on both sides after any history: %s', { timeout: 120_000 }, async (_, faults) => {
    const isLossy = faults.includes('dropped')
    const seq = fc.nat(24)
    const fault = fc.constantFrom(...faults)
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.record({ do: fc.constant('put' as const), seq, to: fc.nat(99) }) },
      { weight: 3, arbitrary: fc.record({ do: fc.constant('remove' as const), seq }) },
      { weight: 4, arbitrary: fc.constantFrom({ do: 'send' as const }, { do: 'look' as const }) },
      {
        weight: 2,
        arbitrary: fc.record({ do: fc.constant('job' as const), most: fc.integer({ min: 1, max: 3 }) }),
      },
      {
        weight: 2,
        arbitrary: fc.constantFrom({ do: 'crash' as const }, { do: 'crash while sending' as const }),
      },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('fail upsert' as const), fault }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('fail deletion' as const), fault }) },
      {
        weight: 2,
        arbitrary: fc.record({ do: fc.constant('change while sending' as const), seq, to: fc.nat(99) }),
      },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('clear' as const) }) },
    )
    const take = async (stage: Stage, given: typeof step extends fc.Arbitrary<infer T> ? T : never) => {
      if (given.do === 'put') stage.put(given.seq, direction(given.to))
      if (given.do === 'remove') stage.remove(given.seq)
      if (given.do === 'send') await stage.mirror.send()
      if (given.do === 'look') await stage.mirror.look()
      if (given.do === 'job') stage.double.runJob(given.most)
      if (given.do === 'clear') stage.index.clear()
      if (given.do === 'fail upsert') stage.double.fail('upsert', given.fault)
      if (given.do === 'fail deletion') stage.double.fail('deleteByIds', given.fault)
      if (given.do === 'crash') stage.wake()
      if (given.do === 'change while sending') {
        const sending = stage.mirror.send()
        stage.put(given.seq, direction(given.to))
        stage.remove(given.to % 25)
        await sending
      }
      if (given.do === 'crash while sending') {
        const sending = stage.mirror.send()
        stage.wake()
        await sending
      }
    }
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 50 }), (steps) =>
        withStage(async (stage) => {
          for (const given of steps) await take(stage, given)
          await stage.settle()
          if (isLossy) {
            await stage.reconcile(25)
            await stage.settle()
          }
          expect(stage.shown()).toEqual(stage.rows())
          const { missing, stale, extra, waiting } = await stage.reconcile(25)
          expect([missing, stale, extra, waiting]).toEqual([0, 0, 0, 0])
        }),
      ),
      { numRuns: 100 },
    )
  })
})
