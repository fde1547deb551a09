/**
 * One turn: from a question to an answer that is stored, as the events of events.ts.
 *
 * Whatever goes wrong ends it in one `error`, and then nothing of it is history. What happens here depends
 * on its ports alone, so that every path can be run in a test.
 */

import { ApiError, coded, reasonOf, unwrap } from '../errors'
import { silenceOf } from '../models/call'
import type { Source } from '../models/language-model'
import { overallLimit } from '../models/silence'
import { isShort } from '../search/text/query'
import { settlesWithin } from '../settles'
import { answerQuestion } from './answer'
import { attachedBytes } from './budget'
import { resolveCitations } from './citations'
import { errorOf, stopped, unknownConversation } from './errors'
import type { DoneEvent, ErrorEvent, HistoryMessage, Timings, Usage } from './events'
import { fitSources } from './fit'
import { addUsage, type Generated } from './generate'
import { fitPassages, latestTurns } from './given'
import { hasGuardrail, judge } from './judge'
import { type History, historyOf, questionBefore, readHistory, saidIn } from './look-back'
import { passagesOf } from './passage'
import type { TurnPorts } from './ports'
import { familyOf } from './prompt'
import type { AskRequest } from './request'
import { allFailed, fatalError, type Retrieved, retrieve, sourcesOf } from './retrieve'
import { type Rewritten, rewriteAndRetrieve } from './rewrite'
import type { Spending } from './spending'
import { type Suggestions, suggest, suggestsAside } from './suggest'
import { type TracedPorts, Tracer } from './trace'
import { fitTranscript } from './transcript'

/** How long a turn that was stopped may take to wind up, until what it spent is told, in milliseconds. */
const WIND_UP_MS = 1_000

/**
 * Runs a turn to its end. Never throws: the last event says how it went. A stop ends it at once, whatever it is
 * waiting for, unless its answer is complete and on its way into history. So does the limit on its time.
 * @returns what it spent on language models, whatever its end, by model
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
  const work = converse(request, tracer, ending)
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

/** How long a turn may take: what its caller waits, or else what any call may take. */
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

/** Rejects when the turn is stopped, or is over its time. */
export const stopOf = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    const stop = () => reject(signal.reason)
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })

export function errorEvent(error: unknown, signal: AbortSignal, { plain }: AskRequest): ErrorEvent {
  if (signal.aborted) return errorOf(stopped())
  if (error instanceof ApiError) return errorOf(error, plain)
  console.error('turn failed', reasonOf(error))
  return errorOf(coded('internal', 500, 'The turn failed through a fault of the server.'))
}

async function converse(request: AskRequest, tracer: Tracer, signal: AbortSignal): Promise<void> {
  const { ports } = tracer
  const started = ports.now()
  const elapsed = () => ports.now() - started
  const timings: Timings = {}

  // Before anything is waited for: whoever runs the turn writes down that it runs as soon as this pauses, and a call
  // to another object leaves only when the writes before it are stored.
  const raw = searchAtOnce(request, ports, started)
  // Looked at when the history is there, if it comes to that.
  raw?.catch(() => {})

  const history = await lookBack(request, ports, started)

  let judging: Promise<Generated[]> | undefined
  const judged = (standalone: string): Promise<Generated[]> => {
    const transcript = history.begins ? history.messages : []
    judging ??= judge(request, { standalone, transcript }, ports, signal)
    // A search that fails first ends the turn; the verdict is then not waited for.
    judging.catch(() => {})
    return judging
  }
  // A question that stands alone is judged beside its search; one that does not, beside that of what it is rewritten to.
  if (history.messages.length === 0) judged(request.question)
  const aside = suggestsAside(request, ports)
  // Looked at when the documents are there, if it comes to that.
  aside.catch(() => {})
  const { given } = request
  if (given?.rewritten) tracer.add(given.rewritten.call)
  const before = given ? latestTurns(history.messages, given.turns, request.model.max_bytes) : []
  const { question, retrieved, generated } = await find(request, history.messages, ports, signal, {
    raw,
    onRewritten: (standalone) => {
      timings.rewritten = elapsed()
      judged(standalone)
    },
  })
  timings.retrieved = elapsed()
  const fatal = fatalError(retrieved, request.onSearchError)
  if (fatal) throw fatal
  const verdicts = await judged(question)
  ports.emit({
    type: 'question',
    question: request.question,
    ...(question !== request.question && { standalone: question }),
  })
  const replies = retrieved.map(({ reply }) => reply)
  const searches = retrieved.map(({ summary }) => summary)
  const failure = allFailed(retrieved)
  if (failure) {
    // Nothing to answer from, and no call to pay for (contract 1.7).
    ports.emit({ type: 'results', replies })
    ports.emit({ type: 'retrieval', passages: [], searches })
    throw failure
  }
  const family = familyOf(request.model.model_name)
  const attached = attachmentsOf(request)
  const { sources: found, cut } = given
    ? fitPassages(given, question, before, request.model)
    : fitSources(
        sourcesOf(retrieved, request.labels),
        question,
        request.model.max_bytes - attachedBytes(attached),
        family,
      )
  const sources = [...attached, ...found]
  ports.emit({ type: 'results', replies })
  ports.emit({ type: 'retrieval', passages: passagesOf(found), searches, ...(cut.length > 0 && { cut }) })

  signal.throwIfAborted()
  const { answer, suggestions } = await answerQuestion(
    request,
    { question, sources, suggests: request.suggests === true && !(await aside), before },
    ports,
    signal,
    (text) => {
      timings.first_token ??= elapsed()
      ports.emit({ type: 'delta', text })
    },
  )
  if (given?.details) ports.emit({ type: 'message', details: given.details })
  const suggesting = (await aside)
    ? suggest(request, { question, answer: answer.text, sources }, ports, signal)
    : Promise.resolve({ questions: suggestions })
  await finish(request, history, answer, sources, tracer, signal, {
    calls: [...verdicts, generated, answer].filter((call) => call !== undefined),
    timings: { ...timings, finished: elapsed() },
    suggesting,
  })
}

/** Whether a question may say too little without the one before it. That is then searched with it. */
const mayLeanOn = ({ continues, transcript = [], question }: AskRequest): boolean =>
  (continues || transcript.length > 0) && isShort(question)

/**
 * Searches the question in its own wording. One that may lean on the question before it waits for that, unless it is known
 * already: from a transcript, or from the messages that were read before the turn began.
 * @returns undefined where it has to wait
 */
function searchAtOnce(
  request: AskRequest,
  ports: TracedPorts,
  now: number,
): Promise<Retrieved[]> | undefined {
  const { continues, model, searches, question } = request
  if (!mayLeanOn(request)) return retrieve(searches, question, ports)
  const said = continues ? questionBefore(ports.known, model, now) : saidIn(beginning(request, now).messages)
  return said === undefined ? undefined : retrieve(searches, question, ports, `${said} ${question}`)
}

/** What was said before a turn. */
interface Past extends History {
  /** whether the conversation begins with the turn: what was said before is then only its caller's word */
  begins: boolean
}

/**
 * @throws ApiError for a conversation that nobody knows, unless it goes by its caller's own name
 */
async function lookBack(request: AskRequest, ports: TracedPorts, now: number): Promise<Past> {
  const { continues, named, replaces, model } = request
  if (continues) {
    const history = await readHistory(ports, model, model.max_bytes)
    if (history.messages.length > 0) return { ...history, begins: false }
    if (!named && !replaces) throw unknownConversation()
  }
  return { ...beginning(request, now), begins: true }
}

/** The caller's transcript as the history of a conversation that begins. */
function beginning(request: AskRequest, now: number): History {
  const { model, transcript = [] } = request
  // What is not judged is not used either.
  return historyOf(hasGuardrail(request) ? fitTranscript(transcript, model.max_bytes) : transcript, now)
}

/** Texts that came with the question. They have no id: nothing that is cited leads back to them. */
const attachmentsOf = ({ attachments = [] }: AskRequest): Source[] =>
  attachments.map(({ name, text }) => ({ collection: '', document: { file: name, text } }))

/**
 * What the question finds, made to stand alone first where it follows up on something.
 * @param raw what it finds in its own wording; absent where that is not searched yet
 */
async function find(
  request: AskRequest,
  history: HistoryMessage[],
  ports: TracedPorts,
  signal: AbortSignal,
  { raw, onRewritten }: { raw: Promise<Retrieved[]> | undefined; onRewritten: (standalone: string) => void },
): Promise<Rewritten> {
  const { given } = request
  if (given) return { question: given.rewritten?.question ?? request.question, retrieved: [] }
  if (history.length > 0) return rewriteAndRetrieve(request, history, raw, ports, signal, onRewritten)
  const { question, searches } = request
  return { question, retrieved: await (raw ?? retrieve(searches, question, ports)) }
}

/** Citations, cost, history, and only then the end. */
async function finish(
  request: AskRequest,
  history: Past,
  answer: Generated,
  sources: Source[],
  tracer: Tracer,
  signal: AbortSignal,
  { calls, timings, suggesting }: { calls: Generated[]; timings: Timings; suggesting: Promise<Suggestions> },
): Promise<void> {
  const { ports } = tracer
  const { model, question, read } = request
  // The prompt made do with the end of a long conversation; a caller who wants to see it wants all of it.
  const whole = read?.history && !history.complete ? readHistory(ports, model) : history
  const citations = answer.declined ? [] : resolveCitations(answer.text, sources)
  for (const citation of citations) ports.emit({ type: 'citation', ...citation })
  const { questions, generated } = await suggesting
  signal.throwIfAborted()
  if (questions.length > 0) ports.emit({ type: 'followups', questions })
  const spent = generated ? [...calls, generated] : calls
  const { inputTokens, outputTokens, estimated } = addUsage(spent.map((call) => call.usage))
  const usage: Usage = {
    model: answer.model,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    ...(estimated && { estimated: true }),
  }
  ports.emit({ type: 'usage', usage, timings })
  const before = (await whole).messages
  // One moment for both, so that a ttl cannot leave an answer without its question.
  const now = ports.now()
  const timestamp = Math.floor(now / 1000)
  const said: HistoryMessage[] = [
    { role: 'user', message: question, timestamp },
    { role: 'assistant', message: answer.text, timestamp },
  ]
  signal.throwIfAborted()
  tracer.committed = true
  // A transcript becomes history with the first answer, and not without it.
  if (history.begins && before.length > 0) ports.emit({ type: 'transcript', messages: before })
  tracer.close()
  const done: DoneEvent = { type: 'done', finish_reason: answer.finish, answer: answer.text }
  unwrap(await ports.store(done, now))
  if (read?.history) ports.emit({ type: 'history', messages: [...before, ...said] })
  ports.emit(done)
}
