/** A search that a language model answers. It searches, asks the model, and replies in one piece or as a stream. */

import { coded, type Failure } from '../../errors'
import { codeOfStatus } from '../../turn/errors'
import type { TurnEvent } from '../../turn/events'
import { emptyTurn, fold } from '../../turn/fold'
import type { Call } from '../edge/route'
import { streamTurn, type TurnEncoder, wholeTurn } from '../turn/stream'
import { errorEnvelope } from './errors'
import type { Pipeline, RagProcessor } from './pipelines'
import {
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
import type { Json } from './route'

interface Asked {
  ext: unknown
  /** the request's body as it came */
  text: string
  /** the part of the body that is the search */
  body: Json
  stream: boolean
  /** of the index */
  name: string
  find(caller: Call & { gone?: AbortSignal }, body: Json): Promise<Json>
}

/** @throws ApiError */
export async function answerSearch(
  call: Call,
  rag: RagProcessor,
  pipeline: Pipeline,
  { ext, text, body, stream, name, find }: Asked,
): Promise<unknown> {
  const started = Date.now()
  const asked = await admitRag(call, rag, { ext, text, inline: pipeline.inline === true })
  const { generative, until } = asked
  const standalone = await rewritten(call, pipeline, asked)
  const wanted =
    standalone === undefined ? body : (withQuestion(body, generative.question, standalone.question) as Json)
  const found = await find({ ...call, gone: call.request.signal }, wanted)
  const reply = (extra: Json): Json => ({
    ...found,
    took: Date.now() - started,
    ext: { retrieval_augmented_generation: extra },
  })
  const passages = passagesOf(found, rag.fields, generative.contextSize, name)
  try {
    if (Date.now() >= until) throw timedOut()
    const turning = await begin(call, asked, passages, standalone)
    if (stream) return await streamed(turning, found, reply, rag.ignoresFailure)
    return reply(extOf(await within(until, wholeTurn(turning.read), turning), turning))
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

/**
 * Server-sent events: `hits` with the search's reply, `answer` with each piece of text, and `done` with the whole
 * reply; `error` if it fails, or `done` with the hits alone if the pipeline ignores failures. With a memory, events carry
 * the ids of the conversation's log. If the stream breaks off, its rest is read by these ids at
 * `GET /conversations/:id/events`.
 */
async function streamed(
  turning: Turning,
  found: Json,
  reply: (extra: Json) => Json,
  ignoresFailure: boolean,
): Promise<Response> {
  const turn = emptyTurn()
  const id = ({ turn: number, seq }: TurnEvent): string => (turning.memory ? `id: ${number}.${seq}\n` : '')
  const written = (event: TurnEvent | undefined, type: string, data: unknown): string =>
    `${event === undefined ? '' : id(event)}event: ${type}\ndata: ${JSON.stringify(data)}\n\n`
  let begun = false
  const opening = (): string => {
    const head = begun ? '' : written(undefined, 'hits', found)
    begun = true
    return head
  }
  const encoder: TurnEncoder = {
    encode(event) {
      fold(turn, event)
      const head = opening()
      if (event.type === 'delta') return head + written(event, 'answer', { text: event.text })
      if (event.type === 'done') return head + written(event, 'done', reply(extOf(turn, turning)))
      return head
    },
    fail(failure: Failure) {
      if (ignoresFailure) return opening() + written(undefined, 'done', found)
      return written(undefined, 'error', failureBody(failure, reply))
    },
  }
  return streamTurn(turning.read, encoder, { headers: {}, opensAt: 'once' })
}

function failureBody({ status, message, code }: Failure, reply: (extra: Json) => Json): Json {
  try {
    return reply(failureOf(coded(code ?? codeOfStatus(status), status, message)))
  } catch (error) {
    return errorEnvelope(error).body
  }
}
