/**
 * The part of Cloudflare's API that lists models of Workers AI, with the fields that its documentation gives:
 * https://developers.cloudflare.com/api/resources/ai/subresources/models/methods/list/
 */
import { EMBEDDING_MODELS, WORKERS_AI_MODELS } from '../../scripts/costs/workers-ai.mjs'
import { Refusal } from './cloudflare-temporary'

export interface CatalogueModel {
  name: string
  properties: { property_id: string; value: unknown }[]
  /** what its schema says of thinking; undefined: it has no such option */
  thinks?: boolean
}

/** A catalogue in which every model is as the list has it, with others beside them. */
export const catalogue = (): CatalogueModel[] => [
  ...Array.from({ length: 120 }, (_, at) => ({ name: `@cf/other/model-${at}`, properties: [] })),
  ...Object.entries(WORKERS_AI_MODELS).map(([name, model]) => ({
    name,
    properties: [
      { property_id: 'context_window', value: String(model.context) },
      {
        property_id: 'price',
        value: [
          { unit: 'per M input tokens', price: model.in, currency: 'USD' },
          { unit: 'per M output tokens', price: model.out, currency: 'USD' },
        ],
      },
      ...(model.paid ? [{ property_id: 'require_workers_paid', value: 'true' }] : []),
    ],
    ...(model.thinking === 'off' && { thinks: true }),
  })),
  ...EMBEDDING_MODELS.map((name) => ({ name, properties: [] })),
]

export const modelRoutes = (
  models: () => CatalogueModel[],
): [pattern: RegExp, handler: (request: Request) => unknown][] => [
  [
    /^GET \/ai\/models\/search$/,
    (request) => {
      const { searchParams } = new URL(request.url)
      const size = Number(searchParams.get('per_page') ?? 20)
      const from = (Number(searchParams.get('page') ?? 1) - 1) * size
      return models()
        .slice(from, from + size)
        .map(({ name, properties }) => ({ name, properties, task: { name: 'Text Generation' } }))
    },
  ],
  [
    /^GET \/ai\/models\/schema$/,
    (request) => {
      const wanted = new URL(request.url).searchParams.get('model')
      const model = models().find(({ name }) => name === wanted)
      if (model === undefined) throw new Refusal(404, 7000, 'No such model')
      const option = { enable_thinking: { type: 'boolean', default: model.thinks } }
      const properties = {
        messages: { type: 'array' },
        ...(model.thinks !== undefined && {
          chat_template_kwargs: { type: 'object', properties: option },
        }),
      }
      return { input: { type: 'object', oneOf: [{ title: 'Messages', properties }] }, output: {} }
    },
  ],
]
