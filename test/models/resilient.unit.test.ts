import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ApiError } from '../../src/errors'
import type { Delta, LanguageModel } from '../../src/models/language-model'
import { type Fault, ProviderError } from '../../src/models/provider-error'
import {
  type Candidate,
  type Clock,
  MOST_ATTEMPTS,
  nextWait,
  RETRY_BUDGET,
  type Resilience,
  resilient,
  systemClock,
  waitBefore,
  withRetries,
} from '../../src/models/resilient'
import { request } from './ask'

const fault = (name: Fault, retryAfterMs?: number) =>
  new ProviderError(400, `OpenAI API error: ${name}`, { fault: name, retryAfterMs })

const REPLY: Delta[] = [
  { type: 'text', text: 'Yes.' },
  { type: 'finish', reason: 'stop' },
]

/** A model that does at each call what comes next: throws, or says deltas, the last of which may be an error. */
function scripted(name: string, ...calls: (Error | (Delta | Error)[])[]) {
  let count = 0
  const model: LanguageModel = {
    name,
    async *generate() {
      const call = calls[count++] ?? fault('busy')
      for (const delta of Array.isArray(call) ? call : [call]) {
        if (delta instanceof Error) throw delta
        yield delta
      }
    },
  }
  return { candidate: { id: `id of ${name}`, model, patience: 60_000 } as Candidate, calls: () => count }
}

/** A clock that only waiting moves, with chance at one half. */
function stoppedClock() {
  const waits: number[] = []
  let time = 0
  const clock: Clock = {
    now: () => time,
    wait: async (milliseconds, signal) => {
      signal?.throwIfAborted()
      waits.push(milliseconds)
      time += milliseconds
    },
    random: () => 0.5,
  }
  return { clock, waits }
}

async function say(
  first: Candidate,
  resilience: Resilience = {},
  signal = new AbortController().signal,
): Promise<Delta[]> {
  const deltas: Delta[] = []
  for await (const delta of resilient(first, resilience).generate(request(), signal)) deltas.push(delta)
  return deltas
}

describe('a wait', () => {
  it('doubles, and is cut by chance to no less than half', () => {
    expect([2, 3, 4].map((attempt) => waitBefore(attempt, undefined, 0))).toEqual([250, 500, 1000])
    expect([2, 3, 4].map((attempt) => waitBefore(attempt, undefined, 0.999))).toEqual([499.75, 999.5, 1999])
  })

  it('is what the provider asked for, and never less', () => {
    expect(waitBefore(2, 1500, 0)).toBe(1500)
    expect(waitBefore(2, 1500, 0.5)).toBe(1625)
    expect(waitBefore(2, 0, 0)).toBe(0)
  })

  it('never leads past the budget or the patience of the model', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 0, max: 10_000 }),
        fc.integer({ min: 1, max: 100_000 }),
        fc.option(fc.integer({ min: 0, max: 100_000 }), { nil: undefined }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (attempts, elapsed, patience, retryAfterMs, random) => {
          const wait = nextWait(fault('busy', retryAfterMs), attempts, elapsed, patience, random)
          if (wait === undefined) return
          expect(attempts).toBeLessThan(MOST_ATTEMPTS)
          expect(elapsed + wait).toBeLessThan(Math.min(RETRY_BUDGET, patience))
          expect(wait).toBeGreaterThanOrEqual(retryAfterMs ?? 250)
        },
      ),
    )
  })

  it('ends at once when the caller stops', async () => {
    const abort = new AbortController()
    const waiting = systemClock.wait(60_000, abort.signal)
    abort.abort(new Error('stopped'))
    await expect(waiting).rejects.toThrow('stopped')
    await expect(systemClock.wait(60_000, abort.signal)).rejects.toThrow('stopped')
  })
})

describe('work', () => {
  it('is done again after passing faults, and after no others', async () => {
    const { clock, waits } = stoppedClock()
    const faults = [fault('unreached'), fault('busy')]
    const work = async () => {
      const next = faults.shift()
      if (next) throw next
      return 'done'
    }
    expect(await withRetries(work, 60_000, clock)).toBe('done')
    expect(waits).toEqual([375, 750])
    faults.push(fault('refused'))
    await expect(withRetries(work, 60_000, clock)).rejects.toThrow('refused')
  })
})

describe('a model', () => {
  it.each(['unreached', 'busy'] as const)('is asked again after it was %s', async (name) => {
    const { clock, waits } = stoppedClock()
    const model = scripted('openai/a', fault(name), fault(name), REPLY)
    const failed = { type: 'failed', model: 'openai/a', error: `OpenAI API error: ${name}` }
    expect(await say(model.candidate, { clock })).toEqual([failed, failed, ...REPLY])
    expect(waits).toEqual([375, 750])
  })

  it('is given up after three attempts, with its own error', async () => {
    const { clock } = stoppedClock()
    const model = scripted('openai/a')
    await expect(say(model.candidate, { clock })).rejects.toThrow('OpenAI API error: busy')
    expect(model.calls()).toBe(3)
  })

  it.each(['limited', 'failed', 'exhausted', 'silent', 'cut', 'denied', 'refused'] as const)(
    'that failed as %s is not asked again',
    async (name) => {
      const model = scripted('openai/a', fault(name), REPLY)
      await expect(say(model.candidate)).rejects.toThrow(name)
      expect(model.calls()).toBe(1)
    },
  )

  it.each(['busy', 'limited'] as const)(
    'that is %s is asked again when it wants to be, and not at all when that is too late',
    async (name) => {
      const soon = scripted('openai/a', fault(name, 2_000), REPLY)
      const { clock, waits } = stoppedClock()
      await say(soon.candidate, { clock })
      expect(waits).toEqual([2_125])
      const late = scripted('openai/a', fault(name, 20_000), REPLY)
      await expect(say(late.candidate, { clock })).rejects.toThrow(name)
      expect(late.calls()).toBe(1)
    },
  )

  it('is not asked again when its own patience is over', async () => {
    const model = scripted('openai/a', fault('busy'), REPLY)
    await expect(say({ ...model.candidate, patience: 300 }, stoppedClock())).rejects.toThrow('busy')
    expect(model.calls()).toBe(1)
  })

  it.each<[string, Delta]>([
    ['text', { type: 'text', text: 'So' }],
    ['a thought', { type: 'reasoning', text: 'Hm' }],
  ])('is never asked again after its first piece, be it %s', async (_, piece) => {
    const model = scripted('openai/a', [piece, fault('busy')], REPLY)
    const other = scripted('openai/b', REPLY)
    await expect(say(model.candidate, { others: async () => [other.candidate] })).rejects.toThrow('busy')
    expect([model.calls(), other.calls()]).toEqual([1, 0])
  })

  it.each([1, 2, 3])('ends its call when nobody reads on after piece %i', async (pieces) => {
    let ended = 0
    const model: LanguageModel = {
      name: 'a',
      async *generate() {
        try {
          for (;;) yield { type: 'text', text: 'and ' }
        } finally {
          ended += 1
        }
      },
    }
    const reply = resilient({ id: 'm', model, patience: 1_000 }).generate(
      request(),
      new AbortController().signal,
    )
    let read = 0
    for await (const _ of reply) if (++read === pieces) break
    expect([read, ended]).toEqual([pieces, 1])
  })

  it('is never asked again when the caller has stopped', async () => {
    const abort = new AbortController()
    const model = scripted('openai/a', fault('busy'), REPLY)
    const clock: Clock = {
      ...stoppedClock().clock,
      wait: async (_, signal) => {
        abort.abort(new Error('stopped'))
        signal?.throwIfAborted()
      },
    }
    const other = scripted('openai/b', REPLY)
    const said = say(model.candidate, { clock, others: async () => [other.candidate] }, abort.signal)
    await expect(said).rejects.toThrow('stopped')
    expect([model.calls(), other.calls()]).toEqual([1, 0])
  })
})

describe('fallbacks', () => {
  const behind =
    (...candidates: Candidate[]) =>
    async () =>
      candidates

  it.each(['unreached', 'busy', 'limited', 'failed', 'exhausted', 'silent', 'cut', 'denied'] as const)(
    'answer for a model that is %s, and say so before their first piece',
    async (name) => {
      const { clock } = stoppedClock()
      const first = scripted('openai/a', fault(name), fault(name), fault(name))
      const second = scripted('google/b', REPLY)
      const deltas = await say(first.candidate, { clock, others: behind(second.candidate) })
      expect(deltas.slice(-3)).toEqual([{ type: 'model', name: 'google/b', id: 'id of google/b' }, ...REPLY])
    },
  )

  it('do not answer what was refused, or what is a fault of ours', async () => {
    for (const error of [fault('refused'), new ApiError(400, 'not allowed'), new TypeError('bug')]) {
      const first = scripted('openai/a', error)
      const second = scripted('google/b', REPLY)
      await expect(say(first.candidate, { others: behind(second.candidate) })).rejects.toBe(error)
      expect(second.calls()).toBe(0)
    }
  })

  it('are asked in their order, whatever became of the ones before', async () => {
    const first = scripted('openai/a', fault('denied'))
    const second = scripted('google/b', fault('refused'))
    const third = scripted('vllm/c', fault('unreached'), REPLY)
    const deltas = await say(first.candidate, {
      ...stoppedClock(),
      others: behind(second.candidate, third.candidate),
    })
    expect(deltas.map((delta) => ('model' in delta ? delta.model : delta.type))).toEqual([
      'openai/a',
      'google/b',
      'vllm/c',
      'model',
      'text',
      'finish',
    ])
  })

  it('that fail, too, leave the error of the model that was asked', async () => {
    const first = scripted('openai/a', fault('denied'))
    const second = scripted('google/b', fault('refused'))
    await expect(say(first.candidate, { others: behind(second.candidate) })).rejects.toThrow(
      'OpenAI API error: denied',
    )
  })

  it('are not looked for while the model answers', async () => {
    const first = scripted('openai/a', REPLY)
    let looked = false
    await say(first.candidate, {
      others: async () => {
        looked = true
        return []
      },
    })
    expect(looked).toBe(false)
  })
})

describe('whatever providers do', () => {
  const call = fc.oneof(
    fc
      .constantFrom<Fault>('unreached', 'busy', 'limited', 'failed', 'exhausted', 'cut', 'denied', 'refused')
      .map((name) => [fault(name)]),
    fc.constant(REPLY),
    fc
      .constantFrom<Fault>('busy', 'cut')
      .map((name) => [{ type: 'text' as const, text: 'Half' }, fault(name)]),
  )
  const calls = fc.array(call, { minLength: MOST_ATTEMPTS, maxLength: MOST_ATTEMPTS })

  it('one of them answers at most, and nobody is asked after its first piece', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(calls, { minLength: 1, maxLength: 4 }), async (scripts) => {
        const models = scripts.map((script, index) => scripted(`x/${index}`, ...script))
        const [first, ...others] = models.map(({ candidate }) => candidate)
        const deltas: Delta[] = []
        const saying = resilient(first!, { others: async () => others, ...stoppedClock() })
        let thrown = false
        try {
          const signal = new AbortController().signal
          for await (const delta of saying.generate(request(), signal)) deltas.push(delta)
        } catch {
          thrown = true
        }
        const asked = models.map((model) => model.calls())
        expect(Math.max(...asked)).toBeLessThanOrEqual(MOST_ATTEMPTS)
        expect(deltas.filter(({ type }) => type === 'text').length).toBeLessThanOrEqual(1)
        const begun = deltas.findIndex(({ type }) => type === 'text')
        // Every attempt but the last is told of as failed, and none comes after a piece.
        const failed = deltas.filter(({ type }) => type === 'failed').length
        const total = asked.reduce((sum, count) => sum + count, 0)
        expect(total - failed).toBe(1)
        if (begun >= 0) expect(deltas.slice(begun).some(({ type }) => type === 'failed')).toBe(false)
        if (!thrown) expect(deltas.at(-1)).toEqual({ type: 'finish', reason: 'stop' })
      }),
      { numRuns: 300 },
    )
  })
})

describe('a model ahead of another', () => {
  it('answers in its place, and says so', async () => {
    const small = scripted('openai/small', REPLY)
    const big = scripted('openai/big', REPLY)
    const deltas = await say(big.candidate, { ahead: small.candidate })
    expect(deltas).toEqual([{ type: 'model', name: 'openai/small', id: 'id of openai/small' }, ...REPLY])
    expect(big.calls()).toBe(0)
  })

  it('leaves it to the other one, whatever its fault is', async () => {
    for (const error of [fault('refused'), fault('silent'), new ApiError(400, 'not allowed')]) {
      const small = scripted('openai/small', error)
      const big = scripted('openai/big', REPLY)
      const deltas = await say(big.candidate, { ahead: small.candidate })
      // One that was silent had taken the prompt.
      const owed = error.message === fault('silent').message && { id: 'id of openai/small', received: 0 }
      expect(deltas).toEqual([
        { type: 'failed', model: 'openai/small', error: error.message, ...owed },
        ...REPLY,
      ])
    }
  })

  it('leaves it the blame, too', async () => {
    const small = scripted('openai/small', fault('denied'))
    const big = scripted('openai/big', fault('refused'))
    await expect(say(big.candidate, { ahead: small.candidate })).rejects.toThrow('refused')
  })

  it('is replaced even when it has begun, since nobody has seen it', async () => {
    const small = scripted('openai/small', fault('busy'), [{ type: 'text', text: 'So' }, fault('cut')])
    const big = scripted('openai/big', REPLY)
    const deltas = await say(big.candidate, { ahead: small.candidate, ...stoppedClock() })
    expect(deltas.map((delta) => ('error' in delta ? delta.error : delta.type))).toEqual([
      'OpenAI API error: busy',
      'OpenAI API error: cut',
      'text',
      'finish',
    ])
  })

  it('is not replaced when the caller has stopped', async () => {
    const abort = new AbortController()
    const small = scripted('openai/small')
    Object.assign(small.candidate.model, {
      generate: () => {
        abort.abort(new Error('stopped'))
        throw abort.signal.reason
      },
    })
    const big = scripted('openai/big', REPLY)
    await expect(say(big.candidate, { ahead: small.candidate }, abort.signal)).rejects.toThrow('stopped')
    expect(big.calls()).toBe(0)
  })
})
