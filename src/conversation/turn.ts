/**
 * One turn: from a question to an answer that is stored, as the events of events.ts.
 *
 * Whatever goes wrong ends it in one `error`, and then nothing of it is history. What happens here depends
 * on its ports alone, so that every path can be run in a test.
 */
import { ApiError, unwrap } from '../errors'
import type { Source } from '../models/language-model'
import { fitDocuments } from './budget'
import { resolveCitations } from './citations'
import type { HistoryMessage, Timings, TurnEventBody } from './events'
import { addUsage, type Generated, generate } from './generate'
import { readHistory } from './history'
import type { TurnPorts } from './ports'
import { answerPrompt, familyOf, guardrailPrompt } from './prompt'
import type { AskRequest } from './request'
import { allFailed, asAsked, fatalError, referencesOf, retrieve } from './retrieval'
import { type Rewritten, rewriteAndRetrieve } from './rewrite'

/** Runs a turn to its end. Never throws: the last event says how it went. */
export async function runTurn(request: AskRequest, ports: TurnPorts, signal: AbortSignal): Promise<void> {
  try {
    await converse(request, ports, signal)
  } catch (error) {
    ports.emit(errorEvent(error, signal))
  }
}

function errorEvent(error: unknown, signal: AbortSignal): TurnEventBody {
  if (signal.aborted) return { type: 'error', status: 400, message: STOPPED, retryable: false }
  if (error instanceof ApiError) {
    const retryable = error.status >= 500 || error.status === 408 || error.status === 429
    return { type: 'error', status: error.status, message: error.message, retryable }
  }
  console.error('turn failed', error)
  return {
    type: 'error',
    status: 500,
    message: 'The turn failed through a fault of the server.',
    retryable: true,
  }
}

const STOPPED = 'The turn was stopped.'

async function converse(request: AskRequest, ports: TurnPorts, signal: AbortSignal): Promise<void> {
  const started = ports.now()
  const elapsed = () => ports.now() - started
  const timings: Timings = {}

  const history = request.continues ? await readHistory(ports, request.model) : []
  if (request.continues && history.length === 0) {
    throw new ApiError(
      400,
      request.shape === 'single' ? 'Conversation not found' : '`conversation_id` is invalid.',
    )
  }

  const judging = judge(request, ports, signal)
  const { question, retrieved, generated } = await find(request, history, ports, signal, () => {
    timings.rewritten = elapsed()
  })
  timings.retrieved = elapsed()
  const fatal = fatalError(retrieved, request.shape)
  if (fatal) throw fatal
  const verdict = await judging
  ports.emit({
    type: 'question',
    question: request.question,
    ...(question !== request.question && { standalone: question }),
  })
  const replies = asAsked(retrieved, request.question, request.shape)
  if (allFailed(retrieved)) {
    // Nothing to answer from, and no call to pay for (contract 1.7).
    ports.emit({ type: 'retrieval', replies, sources: [] })
    ports.emit({ type: 'done', finish_reason: 'no_results', answer: '' })
    return
  }
  const family = familyOf(request.model.model_name)
  const sources = fitDocuments(
    retrieved.map(({ documents }) => documents),
    question,
    request.model.max_bytes,
    family,
  )
  ports.emit({ type: 'retrieval', replies, sources: referencesOf(sources) })

  const answer = await generate(
    ports.model,
    {
      purpose: 'answer',
      messages: answerPrompt(
        family,
        request.model.system_prompt,
        sources.map(({ document }) => document),
        question,
      ),
      question,
      sources,
      history: [],
      stream: request.stream,
    },
    signal,
    (text) => {
      timings.first_token ??= elapsed()
      ports.emit({ type: 'delta', text })
    },
  )
  await finish(request, history, answer, sources, ports, {
    calls: [verdict, generated, answer].filter((call) => call !== undefined),
    timings: { ...timings, finished: elapsed() },
  })
}

/** Searches the question, made to stand alone first where it follows up on something. */
async function find(
  request: AskRequest,
  history: HistoryMessage[],
  ports: TurnPorts,
  signal: AbortSignal,
  onRewritten: () => void,
): Promise<Rewritten> {
  if (history.length > 0) return rewriteAndRetrieve(request, history, ports, signal, onRewritten)
  const retrieved = await retrieve(request.searches, request.question, ports)
  return { question: request.question, retrieved }
}

/** Has the question judged, beside the searches, where the model has a guardrail. @throws ApiError 400 */
function judge(request: AskRequest, ports: TurnPorts, signal: AbortSignal): Promise<Generated | undefined> {
  const instruction = request.model.input_guardrail_prompt
  if (typeof instruction !== 'string' || instruction === '') return Promise.resolve(undefined)
  const { question } = request
  const judging = generate(
    ports.model,
    {
      purpose: 'guardrail',
      messages: guardrailPrompt(instruction, question),
      question,
      sources: [],
      history: [],
      stream: false,
    },
    signal,
  ).then((verdict) => {
    if (/^\W*SAFE\W*$/i.test(verdict.text)) return verdict
    throw new ApiError(400, 'The question was deemed unsafe or inappropriate to answer.')
  })
  // A search that fails first ends the turn; the verdict is then not waited for.
  judging.catch(() => {})
  return judging
}

/** Citations, cost, history, and only then the end. */
async function finish(
  request: AskRequest,
  history: HistoryMessage[],
  answer: Generated,
  sources: Source[],
  ports: TurnPorts,
  { calls, timings }: { calls: Generated[]; timings: Timings },
): Promise<void> {
  for (const citation of resolveCitations(answer.text, sources)) {
    ports.emit({ type: 'citation', ...citation })
  }
  const usage = addUsage(calls.map((call) => call.usage))
  ports.emit({
    type: 'usage',
    usage: {
      model: request.model.model_name,
      input_tokens: usage.inputTokens,
      output_tokens: usage.outputTokens,
      ...(usage.estimated && { estimated: true }),
    },
    timings,
  })
  // One moment for both, so that a ttl cannot leave an answer without its question.
  const timestamp = Math.floor(ports.now() / 1000)
  const said: HistoryMessage[] = [
    { role: 'user', message: request.question, timestamp },
    { role: 'assistant', message: answer.text, timestamp },
  ]
  unwrap(await ports.store(said))
  ports.emit({
    type: 'done',
    finish_reason: answer.finish,
    answer: answer.text,
    ...(request.withHistory && { history: [...history, ...said] }),
  })
}
