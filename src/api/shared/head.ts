/** Reads the beginning of a turn before the reply's headers are sent. An error until then gets its own HTTP status. */
import type { TurnEvent } from '../../turn/events'
import { throwFailure } from './failure'
import { type EventReader, endless } from './read'

/** What to wait for before sending headers, and how long. */
export interface Opening {
  /** wait for one of these events; absent: any */
  awaits?: TurnEvent['type'][]
  /** milliseconds. Clients wait a few seconds for headers, and then retry */
  graceMs: number
}

export interface TurnHead {
  events: TurnEvent[]
  /** a read that has begun and not ended */
  pending?: ReturnType<EventReader>
}

/** Wait for any event, for what was found, or for the first text. */
export const OPENINGS = {
  event: { graceMs: 1_000 },
  found: { awaits: ['retrieval', 'done'], graceMs: 1_000 },
  text: { awaits: ['delta', 'done'], graceMs: 2_500 },
} satisfies Record<string, Opening>

/** Reads until the reply may begin. @throws ApiError if the turn fails before that */
export async function readHead(read: EventReader, { awaits, graceMs }: Opening): Promise<TurnHead> {
  const events: TurnEvent[] = []
  const patience = new Patience(graceMs)
  try {
    for (;;) {
      const pending = read()
      const batch = await Promise.race([pending, patience.over])
      if (batch === 'over') return { events, pending }
      for (const event of batch ?? endless()) {
        throwFailure(event)
        events.push(event)
      }
      if (!awaits || events.some(({ type }) => awaits.includes(type))) return { events }
    }
  } finally {
    patience.stop()
  }
}

/** A wait with a time limit. */
export class Patience {
  readonly over: Promise<'over'>
  readonly #timer: ReturnType<typeof setTimeout>

  constructor(ms: number) {
    const { promise, resolve } = Promise.withResolvers<'over'>()
    this.over = promise
    this.#timer = setTimeout(() => resolve('over'), ms)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
