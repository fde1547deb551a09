/** POST /v1/embeddings: vectors of texts, made by the model of a collection. */
import * as v from 'valibot'
import { type Access, SEARCH_ACTION } from '../../auth/access'
import { admit, requireAccess } from '../../auth/admit'
import { countSearches } from '../../auth/authenticate'
import { ApiError, unwrap } from '../../errors'
import { once } from '../../lib/once'
import { findAssistant } from '../../registry/assistants'
import { findCollection } from '../../registry/collections'
import { retrieverOf } from '../../registry/engines'
import type { Field } from '../../search/types'
import { Embedders } from '../../search/vectors/embedders'
import { byteLength } from '../../turn/prompt'
import { parseJson, readText } from '../http/body'
import { presentedKey } from '../http/cors'
import { json } from '../http/deliver'
import { openTo, requireListed } from '../http/open-assistant'
import type { OpenCall } from '../http/router'
import { checkBody, InvalidParameter } from './question'

/** As many as OpenAI takes. LangChain sends 1,000 by default. */
const MOST_TEXTS = 2048
const LONGEST_TEXT = 32_000
const BYTES_A_TOKEN = 4

const body = once(() => {
  const Text = v.pipe(v.string(), v.minLength(1), v.maxLength(LONGEST_TEXT))
  return v.looseObject({
    model: v.pipe(v.string(), v.minLength(1)),
    input: v.union(
      [Text, v.pipe(v.array(Text), v.minLength(1), v.maxLength(MOST_TEXTS))],
      `Send a text, or up to ${MOST_TEXTS} of them, of 1 to ${LONGEST_TEXT} characters each. Token ids are not read: LangChain sends texts with \`check_embedding_ctx_length=False\`.`,
    ),
    encoding_format: v.nullish(v.picklist(['float', 'base64'])),
    dimensions: v.nullish(v.number()),
  })
})

/** A provider charges for each text, so keys made for pages embed none. */
export async function embed({ env, request, record }: OpenCall): Promise<Response> {
  record.action = SEARCH_ACTION
  const access = await admit(env, presentedKey(request), SEARCH_ACTION, undefined, record)
  if (access.forPages) {
    throw new InvalidParameter(
      'A key made for pages cannot embed texts. Use a key without limits, from a server.',
      null,
      'embeddings_not_allowed',
      403,
    )
  }
  const {
    model: name,
    input,
    encoding_format: format,
    dimensions,
  } = checkBody(body(), parseJson(await readText(request)))
  const texts = typeof input === 'string' ? [input] : input
  const field = await fieldOf(env, access, name, record)
  if (dimensions != null && dimensions !== field.num_dim) {
    throw new InvalidParameter(
      `The vectors of \`${name}\` have ${field.num_dim} dimensions, and no other number.`,
      'dimensions',
    )
  }
  await countSearches(env, Array(texts.length - 1).fill(access))
  const model = new Embedders(env).model(field)
  await model.ready?.()
  const vectors: Float32Array[] = []
  for (let at = 0; at < texts.length; at += model.batchSize) {
    vectors.push(...(await model.embed(texts.slice(at, at + model.batchSize), 'document')))
  }
  const tokens = texts.reduce((sum, text) => sum + Math.ceil(byteLength(text) / BYTES_A_TOKEN), 0)
  return json({
    object: 'list',
    data: vectors.map((vector, index) => ({
      object: 'embedding',
      index,
      embedding: format === 'base64' ? inBase64(vector) : [...vector],
    })),
    model: name,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  })
}

/** 32-bit numbers, the lowest byte first, as OpenAI's clients read them. */
function inBase64(vector: Float32Array): string {
  const bytes = new DataView(new ArrayBuffer(4 * vector.length))
  for (const [at, value] of vector.entries()) bytes.setFloat32(4 * at, value, true)
  return btoa(String.fromCharCode(...new Uint8Array(bytes.buffer)))
}

/** The first embedding field of a collection, or of an assistant's collections. @throws InvalidParameter 404 */
async function fieldOf(
  env: Cloudflare.Env,
  access: Access,
  name: string,
  record: OpenCall['record'],
): Promise<Field> {
  const assistant = await findAssistant(env, name)
  const open = assistant && openTo(access, assistant)
  if (open) requireListed(open, record)
  const unknown = new InvalidParameter(
    `\`${name}\` names no assistant and no collection with an embedding field that this key may search.`,
    'model',
    'model_not_found',
    404,
  )
  const collections = open?.searches?.map(({ collection }) => collection) ?? [name]
  for (const collection of collections) {
    try {
      if (!open) requireAccess(access, undefined, SEARCH_ACTION, collection, record)
      const place = await findCollection(env, collection)
      const { fields } = unwrap(await retrieverOf(env, place).schema())
      const field = fields.find(({ embed: made }) => made !== undefined)
      if (field) return field
    } catch (error) {
      if (!(error instanceof ApiError) || ![401, 404].includes(error.status)) throw error
    }
  }
  throw unknown
}
