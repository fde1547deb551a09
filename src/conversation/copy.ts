/**
 * A turn that copies the answer of another conversation to the same request. It streams while the other is
 * being written, is stored as a turn of its own, and costs nothing.
 */
import { type ErrorCode, unwrap } from '../errors'
import { verdictOf } from '../models/language-model'
import { errorOf, interrupted } from '../turn/errors'
import { readEvent } from '../turn/event-line'
import { type DoneEvent, isForReaders, type TurnEvent } from '../turn/events'
import { messagesOf } from '../turn/fold'
import { historyOf } from '../turn/look-back'
import type { TurnPorts } from '../turn/ports'
import type { AskRequest } from '../turn/request'
import { errorEvent } from '../turn/run'

type CopyPorts = Pick<TurnPorts, 'emit' | 'store' | 'now'>

/**
 * The outcome of a copy. `broken`: the source failed before any of its answer came, so the turn must be run.
 */
export type Copied = 'ended' | 'broken'

/** Endings of a source that say nothing about the answer to this request. */
const UNFINISHED: readonly ErrorCode[] = ['stopped', 'interrupted']

/**
 * Copies a turn to its end, including an error. Never throws. If the source was stopped or died, nothing is
 * known about the answer to this request.
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
      const event = readEvent(line)
      if (!isForReaders(event)) continue
      if (event.type === 'error' && UNFINISHED.includes(event.code)) break
      if (await copy.take(event)) return 'ended'
    }
  } catch (error) {
    if (signal.aborted || copy.storing) {
      ports.emit(errorEvent(error, signal, request))
      return 'ended'
    }
  }
  if (!copy.speaking) return 'broken'
  ports.emit(errorOf(interrupted()))
  return 'ended'
}

class Copy {
  readonly #request: AskRequest
  readonly #ports: CopyPorts
  /** whether any of the answer has been sent */
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
    this.speaking ||= event.type === 'delta' || event.type === 'part'
    this.#ports.emit(event)
    return event.type === 'error'
  }

  async #finish({ finish_reason, answer, ...event }: DoneEvent): Promise<void> {
    const { question, transcript = [], read, copies } = this.#request
    const now = this.#ports.now()
    const before = historyOf(transcript, now).messages
    const done: DoneEvent = { type: 'done', finish_reason, ...verdictOf(event), answer }
    if (copies !== undefined) this.#ports.emit({ type: 'copy', source: copies })
    if (before.length > 0) this.#ports.emit({ type: 'transcript', messages: before })
    this.storing = true
    unwrap(await this.#ports.store(done, now))
    const messages = messagesOf({ transcript: before, question, answer }, Math.floor(now / 1000))
    if (read?.history) this.#ports.emit({ type: 'history', messages })
    this.#ports.emit(done)
  }
}

/** Yields each line once it is complete. Ends with the stream, or throws the signal's reason. */
async function* linesOf(
  source: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  let rest = ''
  for await (const text of source.pipeThrough(new TextDecoderStream(), { signal })) {
    const lines = (rest + text).split('\n')
    rest = lines.pop()!
    yield* lines
  }
}

/**
 * Sends each event that comes before an answer only once. If a copy breaks off, its turn is run, which would
 * repeat them.
 */
export function withoutRepeats(emit: TurnPorts['emit']): TurnPorts['emit'] {
  const told = new Set<string>()
  return (event) => {
    if (event.type === 'question' || event.type === 'results' || event.type === 'retrieval') {
      if (told.has(event.type)) return
      told.add(event.type)
    }
    emit(event)
  }
}
