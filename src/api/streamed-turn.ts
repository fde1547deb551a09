/**
 * A turn as an HTTP answer that is written while the turn runs, in the words of whatever encoder it is given.
 *
 * The path of a piece of text is one read, one parse, one write, and no transform stream stands between: in workerd
 * each costs as much as all of the work done here.
 */
import type { TurnEvent } from '../conversation/events'
import type { Failure } from '../errors'
import { ApiError } from '../errors'
import { emptyTurn, type FoldedTurn, fold } from './folded-turn'
import { type EventReader, endless } from './turn-events'
import { failureOf } from './typesense/response'

/** A protocol's words for the events of one turn. One encoder serves one stream: it may remember what it wrote. */
export interface TurnEncoder {
  /** What an event adds to the stream. An `error` never comes here. */
  encode(event: TurnEvent): string
  /** How a stream ends whose turn failed or was cut off. */
  fail(failure: TurnFault): string
}

/** Why a turn failed. */
export interface TurnFault extends Failure {
  /** whether a model's provider failed, through no fault of the request */
  upstream?: boolean
}

/** A turn that failed before its answer began. */
export class TurnFailure extends ApiError {
  constructor(
    status: number,
    message: string,
    readonly upstream: boolean,
  ) {
    super(status, message)
  }
}

export interface Streaming {
  headers: Record<string, string>
  /**
   * What is waited for before the headers go, since until then an error is an answer with a status of its own:
   * any event, what was found, or the first piece of the answer. A stream that resumes waits for nothing.
   */
  opensAt: 'event' | 'found' | 'text' | 'once'
  /** what goes out in silence, and is passed over: a comment of server-sent events unless said otherwise */
  heartbeat?: string
}

/** How long headers wait, in milliseconds: clients give up on them after five seconds at the earliest. */
const GRACE_MS = { event: 1_000, found: 1_000, text: 2_500, once: 0 }

/** The events of which one is waited for. */
const AWAITED = { found: ['retrieval', 'done'], text: ['delta', 'done'] }

/** Silence after which a comment goes out. Proxies and load balancers give up after 30 s at the earliest. */
const HEARTBEAT_MS = 15_000

/** A comment of server-sent events: every client of these protocols passes over it (contract 3.2). */
const HEARTBEAT = ': ping\n\n'

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
}

/**
 * The answer as it is written.
 * @throws ApiError for a failure before the headers went
 */
export async function streamTurn(
  read: EventReader,
  encoder: TurnEncoder,
  { headers, opensAt, heartbeat: beat = HEARTBEAT }: Streaming,
): Promise<Response> {
  const head = await readHead(read, opensAt)
  const bytes = new TextEncoder()
  let { pending } = head
  let silent = true
  let stopHeartbeat = (): void => {}

  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(bytes.encode(encodeAll(head.events, encoder) || beat))
      if (head.events.at(-1)?.type === 'done') {
        controller.close()
        return
      }
      const heartbeat = setInterval(() => {
        if (silent) controller.enqueue(bytes.encode(beat))
        silent = true
      }, HEARTBEAT_MS)
      stopHeartbeat = () => clearInterval(heartbeat)
    },
    async pull(controller) {
      const close = (last: string) => {
        stopHeartbeat()
        controller.enqueue(bytes.encode(last))
        controller.close()
      }
      try {
        for (let written = false; !written; ) {
          const batch = (await (pending ?? read())) ?? endless()
          pending = undefined
          const failed = batch.findIndex((event) => failureIn(event) !== undefined)
          const events = failed < 0 ? batch : batch.slice(0, failed)
          const text = encodeAll(events, encoder)
          written = text !== ''
          silent = !written
          if (failed >= 0) {
            // A turn whose searches failed has one more event to come, which says nothing.
            await read.stop()
            return close(text + encoder.fail(failureIn(batch[failed]!)!))
          }
          if (events.at(-1)?.type === 'done') return close(text)
          if (written) controller.enqueue(bytes.encode(text))
        }
      } catch (error) {
        close(encoder.fail(failureOf(error)))
      }
    },
    async cancel() {
      // The turn goes on without its reader; only an explicit stop ends it.
      stopHeartbeat()
      await read.stop()
    },
  })
  return new Response(body, { headers: { ...HEADERS, ...headers } })
}

/**
 * The turn in one piece.
 * @throws ApiError when it failed
 */
export async function wholeTurn(read: EventReader): Promise<FoldedTurn> {
  const turn = emptyTurn()
  for (;;) {
    for (const event of (await read()) ?? endless()) {
      throwFailure(event)
      fold(turn, event)
      if (event.type === 'done') return turn
    }
  }
}

interface Head {
  events: TurnEvent[]
  /** a read that was begun and has not ended */
  pending?: ReturnType<EventReader>
}

/** Reads until the stream may begin. @throws ApiError for a failure before that */
async function readHead(read: EventReader, opensAt: Streaming['opensAt']): Promise<Head> {
  const events: TurnEvent[] = []
  if (opensAt === 'once') return { events }
  let end = (_: 'over'): void => {}
  const over = new Promise<'over'>((resolve) => {
    end = resolve
  })
  const timer = setTimeout(() => end('over'), GRACE_MS[opensAt])
  try {
    for (;;) {
      const pending = read()
      const batch = await Promise.race([pending, over])
      if (batch === 'over') return { events, pending }
      for (const event of batch ?? endless()) {
        throwFailure(event)
        events.push(event)
      }
      if (opensAt === 'event' || events.some(({ type }) => AWAITED[opensAt].includes(type))) return { events }
    }
  } finally {
    clearTimeout(timer)
  }
}

function throwFailure(event: TurnEvent): void {
  const failure = failureIn(event)
  if (failure) throw new TurnFailure(failure.status, failure.message, failure.upstream === true)
}

/**
 * Why a turn has no answer, if this event says so. A turn none of whose searches succeeded ends well in Typesense's
 * eyes, which has results to show; a chat has nothing.
 */
function failureIn(event: TurnEvent): TurnFault | undefined {
  if (event.type === 'error') {
    const { status, message, upstream = false } = event
    return { status, message, upstream }
  }
  if (event.type !== 'retrieval') return undefined
  const [first] = event.replies
  if (!first || !('error' in first) || event.replies.some((reply) => 'result' in reply)) return undefined
  return { status: first.code, message: first.error }
}

/** Pieces of text that came together leave as one. */
function encodeAll(events: TurnEvent[], encoder: TurnEncoder): string {
  let encoded = ''
  for (let at = 0; at < events.length; at++) {
    let event = events[at]!
    while (event.type === 'delta' && events[at + 1]?.type === 'delta') {
      const next = events[++at] as typeof event
      event = { ...event, text: event.text + next.text }
    }
    encoded += encoder.encode(event)
  }
  return encoded
}
