/** What is read of a turn before the headers of its answer go: an error until then has a status of its own. */
import type { TurnEvent } from '../../turn/events'
import { throwFailure } from './failure'
import { type EventReader, endless } from './read'

/** What is waited for before the headers go, and for how long. */
export interface Opening {
  /** the events of which one is waited for; absent: any */
  awaits?: TurnEvent['type'][]
  /** milliseconds: clients give up on headers after five seconds at the earliest, and try again */
  graceMs: number
  /** milliseconds from when the searches are answered, where that is sooner */
  foundGraceMs?: number
}

export interface TurnHead {
  events: TurnEvent[]
  /** a read that was begun, and has not ended */
  pending?: ReturnType<EventReader>
}

/** An event, what was found, or the first piece of the answer. */
export const OPENINGS = {
  event: { graceMs: 1_000 },
  found: { awaits: ['retrieval', 'done'], graceMs: 1_000 },
  text: { awaits: ['delta', 'done'], graceMs: 2_500 },
} satisfies Record<string, Opening>

/** Reads until the answer may begin. @throws ApiError for a failure before that */
export async function readHead(
  read: EventReader,
  { awaits, graceMs, foundGraceMs }: Opening,
): Promise<TurnHead> {
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
        if (event.type === 'retrieval' && foundGraceMs !== undefined) patience.endWithin(foundGraceMs)
      }
      if (!awaits || events.some(({ type }) => awaits.includes(type))) return { events }
    }
  } finally {
    patience.stop()
  }
}

/** A wait that ends by itself. */
export class Patience {
  readonly over: Promise<'over'>
  #end!: (over: 'over') => void
  readonly #timers: ReturnType<typeof setTimeout>[] = []

  constructor(ms: number) {
    this.over = new Promise((resolve) => {
      this.#end = resolve
    })
    this.endWithin(ms)
  }

  endWithin(ms: number): void {
    this.#timers.push(setTimeout(() => this.#end('over'), ms))
  }

  stop(): void {
    for (const timer of this.#timers) clearTimeout(timer)
  }
}
