/** Collections and rules that the tests of analytics share. */
import type { AnalyticsRuleSchema } from 'typesense/lib/Typesense/AnalyticsRule'
import { client, unique } from './harness'

const PRODUCTS = [
  { id: '1', name: 'Red shoe', popularity: 5 },
  { id: '2', name: 'Blue shoe', popularity: 0 },
  { id: '3', name: 'Hat', popularity: 0 },
]

export interface Stage {
  products: string
  queries: string
}

/** A collection to search, and one for its queries. */
export async function stage(
  fields: { name: string; type: 'string'; optional?: boolean }[] = [],
): Promise<Stage> {
  const products = unique('products')
  const queries = unique('queries')
  await client()
    .collections()
    .create({
      name: products,
      fields: [
        { name: 'name', type: 'string' },
        { name: 'popularity', type: 'int32', optional: true },
      ],
    })
  await client().collections(products).documents().import(PRODUCTS)
  await client()
    .collections()
    .create({
      name: queries,
      fields: [{ name: 'q', type: 'string' }, { name: 'count', type: 'int32' }, ...fields],
    })
  return { products, queries }
}

export async function rule(given: object): Promise<AnalyticsRuleSchema> {
  const made = await client()
    .analytics.rules()
    .create(given as never)
  return made as AnalyticsRuleSchema
}

export const popular = ({ products, queries }: Stage, params: object = {}) => ({
  name: unique('rule'),
  type: 'popular_queries',
  collection: products,
  event_type: 'search',
  params: { destination_collection: queries, limit: 100, ...params },
})
