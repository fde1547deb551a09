/** Predictions of remote models, whole and in pieces. */
import { ApiError } from '../../../errors'
import { createEmbeddingModel } from '../../../models/embedders'
import { ProviderError } from '../../../models/provider-error'
import { STATIC_EMBEDDER } from '../../../models/static-embedder'
import { predictPiecesWith, predictWith } from '../../../registry/resources'
import type { Call } from '../../http/route'
import { errorEnvelope, OpenSearchError } from '../errors'
import { isObject, type Json, readObject } from '../route'
import { modelOf } from './models'
import { badRequest, notFound, requireKnown } from './shapes'

async function readPrediction({
  env,
  path,
  request,
}: Call): Promise<{ connector: string; parameters: Json }> {
  const { model } = await modelOf(env, path.id!)
  const body = await readObject(request)
  requireKnown(body, ['parameters'], 'a prediction')
  if (model.connector === undefined) throw badRequest('Only remote models take predictions here')
  return { connector: model.connector, parameters: isObject(body.parameters) ? body.parameters : {} }
}

const missing = (id: string) => notFound(`Failed to find connector with the provided connector id: ${id}`)

const resultOf = (dataAsMap: unknown, more: Json = {}): Json => ({
  inference_results: [{ output: [{ name: 'response', dataAsMap }], ...more }],
})

const MOST_TEXTS = 100

/** Returns the provider's own reply to the request's parameters; the vectors of texts from a model that runs here. */
export async function predictModel(call: Call): Promise<Json> {
  const { connector: remote } = (await modelOf(call.env, call.path.id!)).model
  if (remote === undefined) return embedded(call)
  const { connector, parameters } = await readPrediction(call)
  try {
    const predicted = await predictWith(call.env, connector, parameters, call.request.signal)
    if (predicted === undefined) throw missing(connector)
    return resultOf(predicted.reply, { status_code: 200 })
  } catch (error) {
    throw remoteError(error)
  }
}

async function embedded({ env, request }: Call): Promise<Json> {
  const { text_docs: texts, ...others } = await readObject(request)
  // The format of the vectors, which is always the same.
  requireKnown(others, ['return_number', 'target_response', 'parameters'], 'a prediction')
  if (!Array.isArray(texts) || texts.length > MOST_TEXTS || !texts.every((text) => typeof text === 'string'))
    throw badRequest(`A prediction of this model takes [text_docs], a list of at most ${MOST_TEXTS} texts`)
  const model = createEmbeddingModel({ model_name: STATIC_EMBEDDER }, env)
  const vectors = await model.embed(texts, 'document')
  return {
    inference_results: vectors.map((vector) => ({
      output: [
        { name: 'sentence_embedding', data_type: 'FLOAT32', shape: [vector.length], data: [...vector] },
      ],
    })),
  }
}

/**
 * Streams the text of a reply as server-sent events. The last one has `is_last`. A failure before the first piece is an
 * ordinary error, and a later one is the last event.
 */
export async function streamPrediction(call: Call): Promise<Response> {
  const { connector, parameters } = await readPrediction(call)
  const abort = new AbortController()
  const signal = AbortSignal.any([abort.signal, call.request.signal])
  const pieces = await predictPiecesWith(call.env, connector, parameters, signal)
  if (pieces === undefined) throw missing(connector)
  let next = await pieces.next().catch((error: unknown) => {
    throw remoteError(error)
  })
  const encoder = new TextEncoder()
  const event = (data: Json): Uint8Array => encoder.encode(`data: ${JSON.stringify(data)}\n\n`)
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (next.done) {
        controller.enqueue(event(resultOf({ content: '', is_last: true })))
        controller.close()
        return
      }
      controller.enqueue(event(resultOf({ content: next.value, is_last: false })))
      try {
        next = await pieces.next()
      } catch (error) {
        controller.enqueue(event(errorEnvelope(remoteError(error)).body))
        controller.close()
      }
    },
    cancel: () => abort.abort(),
  })
  const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache, no-transform' }
  return new Response(body, { headers })
}

/** A provider's failure with its own status. The envelope replaces statuses that clients would retry. */
function remoteError(error: unknown): unknown {
  if (!(error instanceof ProviderError)) return error
  const { upstream, message } = error
  if (error.fault === 'silent') return new OpenSearchError(500, 'timeout_exception', message)
  if (upstream === undefined || upstream === 200)
    return new ApiError(500, `Error communicating with remote model: ${message}`)
  return new OpenSearchError(
    upstream,
    'status_exception',
    `Error from remote service: ${message.replace(/^Error from remote service: /, '')}`,
  )
}
