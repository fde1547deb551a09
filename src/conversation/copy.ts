/**
 * A turn that copies the answer of another conversation to the same request: it streams along while that one is written,
 * is stored as a turn of its own, and costs nothing.
 */
import { unwrap } from '../errors'
import { parseExact } from '../exact-json'
import type { Citation, HistoryMessage, Timings, TurnEvent, TurnEventBody, Usage } from '../turn/events'
import { INTERRUPTED } from '../turn/events'
import { historyOf } from '../turn/look-back'
import type { FinishedTurn, TurnPorts } from '../turn/ports'
import type { AskRequest } from '../turn/request'
import { errorEvent, STOPPED, stopOf } from '../turn/run'

type CopyPorts = Pick<TurnPorts, 'emit' | 'store' | 'now'>

/** What became of a copy. `broken`: its source gave out before it said anything, and the turn has to be run. */
export type Copied = 'ended' | 'broken'

/**
 * Copies a turn to its end, an error included. Never throws. Where somebody stopped the source, or it died, nothing is
 * known of the answer to this request.
 * @param source the turn's events, as lines of JSON
 */
export async function copyTurn(
  request: AskRequest,
  source: ReadableStream<Uint8Array>,
  ports: CopyPorts,
  signal: AbortSignal,
): Promise<Copied> {
  const events = linesOf(source, signal)
  const copy = new Copy(request, ports)
  try {
    for await (const line of events) {
      const event: TurnEvent = parseExact(line)
      if (event.type === 'error' && (event.message === STOPPED || event.message === INTERRUPTED)) break
      if (await copy.take(event)) return 'ended'
    }
  } catch (error) {
    if (signal.aborted || copy.storing) {
      ports.emit(errorEvent(error, signal, request))
      return 'ended'
    }
  }
  if (!copy.speaking) return 'broken'
  ports.emit({ type: 'error', status: 503, message: INTERRUPTED, retryable: true })
  return 'ended'
}

class Copy {
  readonly #request: AskRequest
  readonly #ports: CopyPorts
  readonly #citations: Citation[] = []
  #standalone: string | undefined
  #followups: string[] = []
  #usage: { usage: Usage; timings: Timings } | undefined
  /** whether something of the answer was told */
  speaking = false
  storing = false

  constructor(request: AskRequest, ports: CopyPorts) {
    this.#request = request
    this.#ports = ports
  }

  /** @returns whether the turn has ended */
  async take({ conversation_id: _c, turn: _t, seq: _s, ...event }: TurnEvent): Promise<boolean> {
    if (event.type === 'done') {
      await this.#finish(event)
      return true
    }
    if (event.type === 'question') this.#standalone = event.standalone
    if (event.type === 'followups') this.#followups = event.questions
    if (event.type === 'usage') this.#usage = event
    if (event.type === 'citation') {
      const { type: _, ...citation } = event
      this.#citations.push(citation)
    }
    this.speaking ||= event.type === 'delta'
    this.#ports.emit(event)
    return event.type === 'error'
  }

  async #finish({ finish_reason, answer }: Extract<TurnEventBody, { type: 'done' }>): Promise<void> {
    const { question, transcript = [], withHistory } = this.#request
    const now = this.#ports.now()
    const timestamp = Math.floor(now / 1000)
    const said: HistoryMessage[] = [
      ...historyOf(transcript, now).messages,
      { role: 'user', message: question, timestamp },
      { role: 'assistant', message: answer, timestamp },
    ]
    this.storing = true
    // A turn that found nothing is not stored: it has no answer.
    if (finish_reason !== 'no_results') {
      unwrap(await this.#ports.store(said, this.#record(finish_reason, answer, now)))
    }
    this.#ports.emit({
      type: 'done',
      finish_reason,
      answer,
      ...(withHistory && finish_reason !== 'no_results' && { history: said }),
    })
  }

  #record(finishReason: string, answer: string, now: number): FinishedTurn {
    const { question, model, copies } = this.#request
    const standalone = this.#standalone !== undefined && { standalone: this.#standalone }
    return {
      question,
      ...standalone,
      answer,
      finish_reason: finishReason,
      citations: this.#citations,
      usage: this.#usage?.usage ?? { model: model.model_name },
      timings: this.#usage?.timings ?? {},
      trace: {
        question,
        ...standalone,
        searches: [],
        calls: [],
        ...(this.#followups.length > 0 && { followups: this.#followups }),
        ...(copies !== undefined && { copy_of: copies }),
      },
      created_at: now,
    }
  }
}

/** Lines as they are completed. Ends with the stream, or in the reason of the signal. */
async function* linesOf(
  source: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  const reader = source.getReader()
  const decoder = new TextDecoder()
  const stop = stopOf(signal)
  stop.catch(() => {})
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), stop])
      if (done) return
      const lines = (rest + decoder.decode(value, { stream: true })).split('\n')
      rest = lines.pop()!
      yield* lines
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}
