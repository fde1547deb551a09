/** Language models of Workers AI, as docs/models.md lists them, compared with Cloudflare's catalogue. */
import { markdown } from './table.mjs'

/**
 * A model as `GET /accounts/ID/ai/models/search` gives it. Values of properties are strings, but for the price.
 * https://developers.cloudflare.com/api/resources/ai/subresources/models/methods/list/
 * @typedef {{ name: string, properties?: { property_id: string, value: any }[] }} CatalogueModel
 */

/**
 * @param {CatalogueModel[]} models all of the catalogue
 * @param {Record<string, unknown>} schemas of the listed language models, by name
 * @param {Date} now
 * @returns {string[]} a sentence for each difference
 */
export function differences(models, schemas, now) {
  const byName = new Map(models.map((model) => [model.name, model]))
  const gone = (/** @type {string} */ name) => `${name}: not in the catalogue any more`
  const language = Object.entries(WORKERS_AI_MODELS).flatMap(([name, listed]) => {
    const model = byName.get(name)
    if (model === undefined) return [gone(name)]
    const said = propertiesOf(model)
    /** @type {[what: string, here: unknown, there: unknown][]} */
    const pairs = [
      ['dollars for a million tokens in', listed.in, priceOf(said.price, 'input')],
      ['dollars for a million tokens out', listed.out, priceOf(said.price, 'output')],
      ['context', listed.context, said.context_window && Number(said.context_window)],
      ['for the Paid plan only', listed.paid ?? false, said.require_workers_paid === 'true'],
      ['thinks by default', listed.thinking === 'off', thinksByDefault(schemas[name])],
    ]
    // What a model does that always thinks is not in its schema.
    const compared = listed.thinking === 'always' ? pairs.slice(0, -1) : pairs
    return [
      ...retirement(name, said, now),
      ...compared
        .filter(([, here, there]) => there !== undefined && here !== there)
        .map(([what, here, there]) => `${name}: ${what}: ${here} here, ${there} in the catalogue`),
    ]
  })
  const embedding = EMBEDDING_MODELS.flatMap((name) => {
    const model = byName.get(name)
    return model === undefined ? [gone(name)] : retirement(name, propertiesOf(model), now)
  })
  return [...language, ...embedding]
}

/** @param {CatalogueModel} model @returns {Record<string, any>} */
const propertiesOf = ({ properties = [] }) =>
  Object.fromEntries(properties.map(({ property_id: id, value }) => [id, value]))

/**
 * @param {string} name
 * @param {Record<string, any>} said
 * @param {Date} now
 */
function retirement(name, { planned_deprecation_date: date }, now) {
  if (date === undefined) return []
  return [
    `${name}: ${new Date(date) <= now ? 'was retired on' : 'will be retired on'} ${String(date).slice(0, 10)}`,
  ]
}

/**
 * @param {unknown} price
 * @param {'input' | 'output'} of
 * @returns {number | undefined} undefined where the catalogue does not say
 */
function priceOf(price, of) {
  if (!Array.isArray(price)) return undefined
  const { price: dollars } = price.find(({ unit }) => unit === `per M ${of} tokens`) ?? {}
  return dollars
}

/**
 * Whether a model thinks unless it gets `chat_template_kwargs.enable_thinking: false`.
 * @param {unknown} schema of its input and output
 * @returns {boolean}
 */
function thinksByDefault(schema) {
  if (typeof schema !== 'object' || schema === null) return false
  const { enable_thinking: option } = /** @type {any} */ (schema).chat_template_kwargs?.properties ?? {}
  return option?.default === true || Object.values(schema).some(thinksByDefault)
}

/** The day on which the list was compared with Cloudflare's catalogue and price list. */
export const CHECKED = '2026-11-22'

/**
 * Prices are dollars by a million tokens, the context is tokens of prompt and answer together. `thinking`: `off` where Parley
 * turns it off unless `reasoning_effort` is set, `always` where nothing turns it off. `paid`: for the Workers Paid plan only.
 * https://developers.cloudflare.com/workers-ai/models/
 * @type {Record<string, { in: number, out: number, context: number, thinking?: 'off' | 'always', paid?: true,
 *   note?: string }>}
 */
export const WORKERS_AI_MODELS = {
  '@cf/ibm-granite/granite-4.0-h-micro': { in: 0.017, out: 0.11, context: 131_000, note: 'the cheapest' },
  '@cf/meta/llama-3.2-1b-instruct': { in: 0.027, out: 0.201, context: 60_000 },
  '@cf/zai-org/glm-4.7-flash': { in: 0.0605, out: 0.4, context: 131_072, thinking: 'off' },
  '@cf/google/gemma-4-26b-a4b-it': { in: 0.1, out: 0.3, context: 256_000, thinking: 'off' },
  '@cf/openai/gpt-oss-20b': { in: 0.2, out: 0.3, context: 128_000, thinking: 'always' },
  '@cf/meta/llama-3.3-70b-instruct-fp8-fast': {
    in: 0.293,
    out: 2.253,
    context: 24_000,
    note: 'of the trial question',
  },
  '@cf/openai/gpt-oss-120b': { in: 0.35, out: 0.75, context: 128_000, thinking: 'always' },
  '@cf/zai-org/glm-5.3-flash': { in: 0.15, out: 0.5, context: 1_310_720, thinking: 'always', paid: true },
}

/** What else of Workers AI Parley calls by name: models that make vectors, and the one that orders documents anew. */
export const EMBEDDING_MODELS = [
  '@cf/baai/bge-m3',
  '@cf/baai/bge-small-en-v1.5',
  '@cf/baai/bge-base-en-v1.5',
  '@cf/baai/bge-large-en-v1.5',
  '@cf/qwen/qwen3-embedding-0.6b',
  '@cf/google/embeddinggemma-300m',
  '@cf/baai/bge-reranker-base',
]

const THINKING = { off: 'thinks when `reasoning_effort` is set', always: 'always thinks' }

/** @param {typeof WORKERS_AI_MODELS[string]} model */
const remarks = ({ thinking, paid, note }) =>
  [paid && 'Workers Paid plan only', thinking && THINKING[thinking], note].filter(Boolean).join('; ')

/** In Markdown. */
export const modelsTable = () =>
  markdown([
    ['`model_name`, after `cloudflare/`', 'A million tokens in', 'out', 'Context', 'Remarks'],
    ...Object.entries(WORKERS_AI_MODELS).map(([name, model]) => [
      `\`${name}\``,
      `$${model.in}`,
      `$${model.out}`,
      model.context.toLocaleString('en-US'),
      remarks(model),
    ]),
  ])
