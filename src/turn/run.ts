/**
 * One turn, from a question to a stored answer, as the events of events.ts.
 *
 * Any failure ends the turn in a single `error`, and nothing of the turn becomes history. The turn depends on
 * its ports only, so tests can run every path.
 */

import { ApiError, coded, logFailure, storageFull, unwrap } from '../errors'
import { contentOf, filesOf, textOf, withoutFileTexts } from '../lib/parts'
import { settlesWithin } from '../lib/waiting'
import { silenceOf } from '../models/call'
import type { ChatMessage, Source } from '../models/language-model'
import { namespaceOf } from '../models/providers'
import { overallLimit } from '../models/resilient'
import { isShort } from '../search/text/query'
import { answerQuestion, hasGuardrail, judge, suggest, suggestsAside } from './answer'
import { checked } from './citations'
import { errorOf, stopped, unknownConversation } from './errors'
import type { Citation, DoneEvent, ErrorEvent, HistoryMessage, Timings, Usage } from './events'
import { messagesOf } from './fold'
import {
  fitPassages,
  fitTranscript,
  type History,
  historyOf,
  latestTurns,
  questionBefore,
  readHistory,
  saidBytes,
  saidIn,
} from './look-back'
import { passagesOf } from './passage'
import { ASKED_BYTES, attachedBytes, byteLength, familyOf, fitSources, formBytes } from './prompt'
import type { AskRequest } from './request'
import {
  failureOf,
  fatalError,
  orderOf,
  type Retrieved,
  type Rewritten,
  retrieve,
  rewriteAndRetrieve,
  sourcesOf,
} from './retrieve'
import { contentWith, ToolSteps } from './tools'
import { type Generated, type Spending, type TracedPorts, Tracer, type TurnPorts } from './trace'

/** How long a stopped turn may take to wind up and report its spending, in milliseconds. */
const WIND_UP_MS = 1_000

/**
 * Runs a turn to its end. Never throws: the last event tells the outcome. A stop ends the turn at once,
 * whatever it waits for, unless its answer is complete and being stored. So does its time limit.
 * @returns what it spent on language models, by model, whatever the outcome
 */
export async function runTurn(
  request: AskRequest,
  ports: TurnPorts,
  signal: AbortSignal,
): Promise<Spending[]> {
  const tracer = new Tracer(ports)
  const spent = () => tracer.spending(request.model.id)
  ports.spends?.(spent)
  const late = new AbortController()
  const { error, ms } = limitOf(request, ports.now())
  const timer = setTimeout(() => late.abort(error), ms)
  const ending = AbortSignal.any([signal, late.signal])
  const work = takeSteps(request, tracer, ending)
  try {
    await Promise.race([
      work,
      stopOf(ending).catch((stop) => (tracer.committed ? work : Promise.reject(stop))),
    ])
  } catch (error) {
    tracer.close()
    ports.emit(errorEvent(error, signal, request))
  } finally {
    clearTimeout(timer)
  }
  await settlesWithin(
    WIND_UP_MS,
    work.catch(() => {}),
  )
  return spent()
}

/** A turn's time limit: how long its caller waits, or else the limit of any call. */
function limitOf({ until, model }: AskRequest, now: number): { error: ApiError; ms: number } {
  if (until !== undefined) {
    return { error: coded('timed_out', 408, 'Timeout waiting for task.'), ms: Math.max(0, until - now) }
  }
  const seconds = overallLimit(silenceOf(model))
  return {
    error: coded('over_time', 400, `The turn took longer than the maximum of ${seconds} seconds.`),
    ms: seconds * 1000,
  }
}

/** Rejects when the turn is stopped or out of time. */
const stopOf = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    const stop = () => reject(signal.reason)
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })

export function errorEvent(error: unknown, signal: AbortSignal, request: AskRequest): ErrorEvent {
  if (signal.aborted) return errorOf(stopped())
  if (error instanceof ApiError) return errorOf(error, request.plain, request.requestId)
  const full = storageFull(error)
  if (full) return errorOf(full)
  logFailure('turn failed', error, { requestId: request.requestId, conversation: request.conversationId })
  return errorOf(coded('internal', 500, 'The turn failed through a fault of the server.'))
}

async function takeSteps(request: AskRequest, tracer: Tracer, signal: AbortSignal): Promise<void> {
  const { ports } = tracer
  const timings: Timings = {}
  const { history, question, sources, before, aside } = await research(request, tracer, signal, timings)
  signal.throwIfAborted()
  const show = (text: string) => {
    timings.first_token ??= tracer.elapsed()
    ports.emit({ type: 'delta', text })
  }
  const isHeld = request.support?.below === 'withhold'
  const said = history.begins ? [] : history.messages
  const steps = new ToolSteps(request, sources, said, ports, signal)
  const { answer: written, suggestions } = await answerQuestion(
    request,
    { question, sources, suggests: request.suggests === true && !(await aside), before, steps },
    ports,
    signal,
    isHeld ? () => {} : show,
  )
  const { answer, citations, remark } = checked(request, written, question, sources)
  if (isHeld) show(answer.text)
  else if (remark !== undefined) show(remark)
  if (request.given?.details) ports.emit({ type: 'message', details: request.given.details })
  const suggesting =
    (await aside) && !steps.waits
      ? suggest(request, { question, answer: answer.text, sources }, ports, signal)
      : Promise.resolve(answer.verdict.declined ? [] : suggestions)
  await finish(request, history, answer, citations, tracer, signal, {
    timings: { ...timings, finished: tracer.elapsed() },
    suggesting,
  })
}

/** What comes before an answer: the history, the judgement of the question, and its documents. @throws ApiError */
async function research(request: AskRequest, tracer: Tracer, signal: AbortSignal, timings: Timings) {
  const { ports } = tracer
  const started = ports.now()
  // Its object has mostly begun it.
  const raw = searchAtOnce(request, ports, started)
  // Awaited later, once the history is there; or never.
  raw?.catch(() => {})

  const history = await lookBack(request, ports, started)

  let judging: Promise<void> | undefined
  const judged = (standalone: string): Promise<void> => {
    const transcript = history.begins ? history.messages : []
    judging ??= judge(request, { standalone, transcript }, ports, signal)
    // If a search fails first, it ends the turn and nobody awaits the verdict.
    judging.catch(() => {})
    return judging
  }
  // A question that stands alone is judged while it is searched. A follow-up is judged while its rewritten form
  // is.
  if (history.messages.length === 0) judged(textOf(request.question))
  const aside = suggestsAside(request, ports)
  // Awaited later, once the documents are there; or never.
  aside.catch(() => {})
  if (request.given?.rewritten) tracer.add(request.given.rewritten.call)
  const before = saidBefore(request, history.messages)
  const { question, retrieved } = await find(request, history.messages, ports, signal, {
    raw,
    onRewritten: (standalone) => {
      timings.rewritten = tracer.elapsed()
      judged(standalone)
    },
  })
  timings.retrieved = tracer.elapsed()
  const fatal = fatalError(retrieved, request.onSearchError)
  if (fatal) throw fatal
  await judged(question)
  ports.emit({
    type: 'question',
    question: withoutFileTexts(request.question),
    ...(question !== textOf(request.question) && { standalone: question }),
  })
  const failure = failureOf(retrieved)
  // Without a document to answer from, no call is paid for (contract 1.7).
  const chosen = failure ? undefined : choose(request, question, retrieved, before)
  const { sources = [], found = [], cut = [] } = chosen ?? {}
  const searches = retrieved.map(({ summary }) => summary)
  ports.emit({ type: 'results', replies: retrieved.map(({ reply }) => reply) })
  ports.emit({ type: 'retrieval', passages: passagesOf(found), searches, ...(cut.length > 0 && { cut }) })
  if (failure) throw failure
  return { history, question, sources, before, aside }
}

/** What the prompt has room for: the question's files, and of the documents that were found the best. */
function choose(request: AskRequest, question: string, retrieved: Retrieved[], before: ChatMessage[]) {
  const { given, model, form, searches, labels } = request
  const attached = attachmentsOf(request)
  const taken = attachedBytes(attached) + formBytes(form) + saidBytes(before) + askedBytes(request, question)
  const { sources: found, cut } = given
    ? fitPassages(given, question, before, model)
    : fitSources(
        sourcesOf(retrieved, labels),
        question,
        model.max_bytes - taken,
        familyOf(model.model_name),
        orderOf(searches),
      )
  return { sources: [...attached, ...found], found, cut }
}

/** Turns that the prompt of an assistant's answer holds, and their share of its bytes. */
const LATEST = { turns: 3, share: 0.2 }

/** What the prompt for the answer holds of earlier turns, oldest first. The built-in model reads none. */
function saidBefore(
  { given, assistant, model, question }: AskRequest,
  history: HistoryMessage[],
): ChatMessage[] {
  if (given) return latestTurns(history, given.turns, model.max_bytes)
  // A question that fills half of the prompt leaves no room for more than documents.
  const isLong = byteLength(textOf(question)) * 2 > model.max_bytes
  const reads = assistant !== undefined && !isLong && namespaceOf(model.model_name) !== 'local'
  return reads ? latestTurns(history, LATEST.turns, model.max_bytes, LATEST.share) : []
}

/** Bytes that the prompt of an assistant's answer takes for the question as it was asked. */
function askedBytes({ assistant, question }: AskRequest, standalone: string): number {
  const asked = textOf(question)
  return assistant === undefined || asked === standalone ? 0 : ASKED_BYTES + byteLength(asked)
}

/**
 * Whether a question may be too short to search without the one before it. It is then searched together with
 * that one.
 */
export const mayLeanOn = ({
  continues,
  transcript = [],
  question,
}: Pick<AskRequest, 'continues' | 'transcript' | 'question'>): boolean =>
  (continues || transcript.length > 0) && isShort(textOf(question))

/**
 * Searches the question in its own wording. A question that may depend on the one before needs that one first.
 * It is known already from a transcript, or from messages read before the turn began.
 * @returns undefined if the search has to wait for the history
 */
export function searchAtOnce(
  request: AskRequest,
  ports: Pick<TurnPorts, 'search' | 'schema' | 'placeOf' | 'known'>,
  now: number,
): Promise<Retrieved[]> | undefined {
  const { continues, model, searches } = request
  const question = textOf(request.question)
  if (!mayLeanOn(request)) return retrieve(searches, question, ports)
  const said = continues ? questionBefore(ports.known, model, now) : saidIn(beginning(request, now).messages)
  return said === undefined ? undefined : retrieve(searches, question, ports, `${said} ${question}`)
}

/** What was said before a turn. */
interface Past extends History {
  /** whether the turn begins the conversation; what was said before is then only the caller's claim */
  begins: boolean
}

/** @throws ApiError for an unknown conversation, unless its id stands for a name that the caller chose */
async function lookBack(request: AskRequest, ports: TracedPorts, now: number): Promise<Past> {
  const { continues, named, replaces, model } = request
  if (continues) {
    const history = await readHistory(ports, model, model.max_bytes)
    if (history.messages.length > 0) return { ...history, begins: false }
    if (!named && !replaces) throw unknownConversation()
  }
  return { ...beginning(request, now), begins: true }
}

/** The caller's transcript as the history of a new conversation. */
function beginning(request: AskRequest, now: number): History {
  const { model, transcript = [] } = request
  // If the model has a guardrail, use only what the guardrail will judge.
  return historyOf(hasGuardrail(request) ? fitTranscript(transcript, model.max_bytes) : transcript, now)
}

/** The question's files as documents. They have no id, so a citation cannot point to them. */
const attachmentsOf = ({ question }: AskRequest): Source[] =>
  filesOf(question).flatMap(({ name, text }) =>
    text === undefined ? [] : { collection: '', document: { file: name, text } },
  )

/**
 * Searches for the question. A follow-up is rewritten to stand alone first.
 * @param raw the search of the question's own wording; absent if it has not started yet
 */
async function find(
  request: AskRequest,
  history: HistoryMessage[],
  ports: TracedPorts,
  signal: AbortSignal,
  { raw, onRewritten }: { raw: Promise<Retrieved[]> | undefined; onRewritten: (standalone: string) => void },
): Promise<Rewritten> {
  const { given, searches } = request
  const question = textOf(request.question)
  if (given) return { question: given.rewritten?.question ?? question, retrieved: [] }
  if (history.length > 0) return rewriteAndRetrieve(request, history, raw, ports, signal, onRewritten)
  return { question, retrieved: await (raw ?? retrieve(searches, question, ports)) }
}

/** Emits citations and cost, stores the turn, and only then ends it. */
async function finish(
  request: AskRequest,
  history: Past,
  answer: Generated,
  citations: readonly Citation[],
  tracer: Tracer,
  signal: AbortSignal,
  { timings, suggesting }: { timings: Timings; suggesting: Promise<string[]> },
): Promise<void> {
  const { ports } = tracer
  const { model, question, read } = request
  // The prompt used only the end of a long conversation. A caller who asks for the history gets all of it.
  const whole = read?.history && !history.complete ? readHistory(ports, model) : history
  for (const citation of citations) ports.emit({ type: 'citation', ...citation })
  const questions = await suggesting
  signal.throwIfAborted()
  if (questions.length > 0) ports.emit({ type: 'followups', questions })
  const { inputTokens, outputTokens, estimated } = tracer.usage
  const usage: Usage = {
    model: answer.model,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    ...(estimated && { estimated: true }),
  }
  ports.emit({ type: 'usage', usage, timings })
  const before = (await whole).messages
  // Question and answer share one timestamp, so that a ttl never removes one without the other.
  const now = ports.now()
  const timestamp = Math.floor(now / 1000)
  const content = answer.content ? contentWith(answer.content, answer.text) : contentOf(answer.text)
  const said = messagesOf({ transcript: [], question, answer: content }, timestamp)
  signal.throwIfAborted()
  tracer.committed = true
  // A transcript becomes history with the first answer, and only then.
  if (history.begins && before.length > 0) ports.emit({ type: 'transcript', messages: before })
  tracer.close()
  const done: DoneEvent = {
    type: 'done',
    finish_reason: answer.finish,
    ...answer.verdict,
    answer: content,
  }
  unwrap(await ports.store(done, now))
  if (read?.history) ports.emit({ type: 'history', messages: [...before, ...said] })
  ports.emit(done)
}
