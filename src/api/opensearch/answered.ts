/** A search that a language model answers. It searches, asks the model, and replies in one piece or as a stream. */

import { coded } from '../../errors'
import { settlesWithin } from '../../lib/settles'
import { codeOfStatus } from '../../turn/errors'
import { slowly } from '../http/deliver'
import type { Call } from '../http/route'
import { streamTurn, wholeTurn } from '../shared/stream'
import { AnswerEncoder, answerWording } from './answer-encoder'
import { errorEnvelope } from './errors'
import type { Pipeline, RagProcessor } from './pipelines'
import type { Ahead } from './prefetch'
import {
  type Asking,
  admitRag,
  begin,
  extOf,
  failureOf,
  passagesOf,
  rewritten,
  type Turning,
  timedOut,
  withQuestion,
} from './rag'
import { isOn, type Json } from './route'

interface Asked {
  ext: unknown
  ahead: Ahead
  /** what it asks its model, if that was found out ahead. Never rejects */
  asking: Promise<Asking | undefined>
  /** the request's body as it came */
  text: string
  /** the part of the body that is the search */
  body: Json
  stream: boolean
  /** of the index */
  name: string
  find(caller: Call & { gone?: AbortSignal }, body: Json): Promise<Json>
}

/**
 * How long an error of a whole answer can still have its own status. Then the answer begins with blanks: OpenSearch's clients
 * for Python wait 10 s for each read, those for JavaScript 30 s.
 */
const PATIENCE_MS = 8_000

/** @throws ApiError */
export async function answerSearch(
  call: Call,
  rag: RagProcessor,
  pipeline: Pipeline,
  { ext, ahead, asking, text, body, stream, name, find }: Asked,
): Promise<unknown> {
  const started = Date.now()
  const asked = await admitRag(call, pipeline, rag, { ext, ahead, asking, text })
  const { generative, until } = asked
  const standalone = await rewritten(call, pipeline, asked, ahead)
  const wanted =
    standalone === undefined ? body : (withQuestion(body, generative.question, standalone.question) as Json)
  const found = await find({ ...call, gone: call.request.signal }, wanted)
  const reply = (extra: Json): Json => ({
    ...found,
    took: Date.now() - started,
    ext: { retrieval_augmented_generation: extra },
  })
  const words = stream ? answerWording(asked.memory !== undefined) : undefined
  const passages = passagesOf(found, rag.fields, generative.contextSize, name)
  try {
    if (Date.now() >= until) throw timedOut()
    const turning = await begin(call, asked, passages, standalone, words)
    if (stream) return await streamed(turning, found, reply, rag.ignoresFailure)
    const answer = within(until, wholeTurn(turning.read), turning).then((turn) => reply(extOf(turn, turning)))
    // A reply with line breaks is for people.
    const left = Math.max(0, started + PATIENCE_MS - Date.now())
    if (isOn(call.query.pretty) || (await settlesWithin(left, answer))) return await answer
    const body = answer.catch((error) => (rag.ignoresFailure ? found : failureBody(error, reply)))
    return slowly(
      body.then((json) => JSON.stringify(json)),
      () => void turning.read.stop(),
    )
  } catch (error) {
    if (rag.ignoresFailure) return found
    return reply(failureOf(error))
  }
}

/** Waits for a turn's answer until its caller's time is up. The turn itself then ends, or never begins (turn.ts). */
async function within<T>(until: number, work: Promise<T>, { read }: Turning): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | null = null
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(timedOut()), Math.max(0, until - Date.now()) + GRACE_MS)
  })
  try {
    return await Promise.race([work, late])
  } catch (error) {
    await read.stop()
    throw error
  } finally {
    clearTimeout(timer)
  }
}

/** A turn that reaches its own deadline reports that itself. This extra time is for one that is never reached. */
const GRACE_MS = 500

/** With a memory, the stream's rest is read at `GET /conversations/:id/events` if it breaks off. */
const streamed = (
  turning: Turning,
  found: Json,
  reply: (extra: Json) => Json,
  ignoresFailure: boolean,
): Promise<Response> => {
  const encoder = new AnswerEncoder({
    found,
    hasMemory: turning.memory,
    ignoresFailure,
    whole: (turn) => reply(extOf(turn, turning)),
    failed: ({ status, message, code }) =>
      failureBody(coded(code ?? codeOfStatus(status), status, message), reply),
  })
  return streamTurn(turning.read, encoder, { headers: {}, opensAt: 'once' })
}

function failureBody(error: unknown, reply: (extra: Json) => Json): Json {
  try {
    return reply(failureOf(error))
  } catch (refusal) {
    return errorEnvelope(refusal).body
  }
}
