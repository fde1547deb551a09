/** What Cloudflare's catalogue of models says, beside what is listed here. Nothing here talks to anybody. */
import { EMBEDDING_MODELS, WORKERS_AI_MODELS } from './workers-ai.mjs'

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
