/**
 * Logs turns: one line of JSON at the end of each, whatever its end. `request_id` joins it with the request's own line
 * (api/http/request-log.ts). No line holds text of the question, the answer or the documents, nor a key.
 * LOG_REQUESTS=on turns it on, as it does the lines of requests. The same figures go to Analytics Engine, if it is bound.
 */
import { isTerminal, type LogEventBody } from './events'
import type { Turn } from './fold'
import type { AskRequest } from './request'
import { attemptsOf, sumOf } from './trace'

/** What a turn took, in milliseconds from when it was asked for. */
export class TurnClock {
  readonly #asked = Date.now()
  #ran = this.#asked
  #spoke: number | undefined
  #ended: number | undefined

  /** The turn begins to run: the turns before it have ended. */
  run(): void {
    this.#ran = Date.now()
  }

  /** Takes an event of the turn as it is emitted. */
  see(event: LogEventBody): void {
    if (event.type === 'delta') this.#spoke ??= Date.now()
    if (isTerminal(event)) this.#ended ??= Date.now()
  }

  /** `first_token_ms`: until the first text of the answer, if there was any. */
  get times(): { waited_ms: number; first_token_ms: number | undefined; ms: number } {
    return {
      waited_ms: this.#ran - this.#asked,
      first_token_ms: this.#spoke === undefined ? undefined : this.#spoke - this.#asked,
      ms: (this.#ended ?? Date.now()) - this.#asked,
    }
  }
}

type LoggedRequest = Pick<AskRequest, 'requestId' | 'conversationId' | 'protocol' | 'model'>

/**
 * The fields of a turn's line that its events and its request tell. An undefined one is left out.
 * @param request absent: the turn's object died before its end, and only its log is left
 */
function turnLine(turn: Turn, request?: LoggedRequest): Record<string, unknown> {
  const calls = turn.calls.map(({ call }) => call)
  const searches = turn.searches.map(({ search }) => search)
  const { inputTokens, outputTokens } = sumOf(attemptsOf(calls))
  return {
    request_id: request?.requestId ?? turn.requestId,
    conversation_id: request?.conversationId ?? turn.conversationId,
    turn: turn.turn,
    protocol: request?.protocol,
    assistant: turn.assistant,
    model: request?.model.id,
    // Another one than `model` names, if that one failed.
    answered_by: calls.find(({ purpose }) => purpose === 'answer' || purpose === 'task')?.model,
    outcome: turn.error?.code ?? turn.status,
    status: turn.error?.status,
    finish_reason: turn.finishReason,
    copy_of: turn.copyOf,
    searches: searches.length,
    failed_searches: searches.filter(({ error }) => error !== undefined).length,
    // Documents in the prompt.
    hits: turn.passages.length,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    // The slowest one.
    search_ms: searches.length === 0 ? undefined : Math.max(...searches.map(({ took }) => took)),
  }
}

/**
 * Reports a turn that has ended: its line, and a data point where a dataset of Analytics Engine is bound as `TURNS`.
 * @param request, @param clock absent: see `turnLine`
 */
export function logTurn(env: Cloudflare.Env, turn: Turn, request?: LoggedRequest, clock?: TurnClock): void {
  if (env.LOG_REQUESTS !== 'on' && !env.TURNS) return
  const version = env.CF_VERSION_METADATA?.id
  const line = { version, ...turnLine(turn, request), ...clock?.times }
  env.TURNS?.writeDataPoint(dataPoint(line))
  if (env.LOG_REQUESTS !== 'on') return
  const ts = new Date().toISOString()
  console.log(JSON.stringify({ type: 'turn', ts, ...line }))
}

/** Append only: queries name them by their places, `blob1` and `double1` being the first (docs/operating.md). */
const BLOBS = ['outcome', 'protocol', 'model', 'answered_by', 'version', 'finish_reason']
const DOUBLES = [
  'ms',
  'waited_ms',
  'search_ms',
  'first_token_ms',
  'input_tokens',
  'output_tokens',
  'hits',
  'searches',
  'failed_searches',
  'status',
]
/** Bytes that an index may have. */
const LONGEST_INDEX = 96

/** A missing text is '' and a missing number 0. The model is the index, by which Analytics Engine samples. */
function dataPoint(line: Record<string, unknown>): AnalyticsEngineDataPoint {
  const texts = BLOBS.map((name) => String(line[name] ?? ''))
  const model = new TextEncoder().encode(String(line.model ?? ''))
  return {
    indexes: [model.slice(0, LONGEST_INDEX).buffer],
    blobs: texts,
    doubles: DOUBLES.map((name) => Number(line[name] ?? 0)),
  }
}
