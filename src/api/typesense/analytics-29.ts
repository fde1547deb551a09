/** Analytics rules in the shape of release 29, as older clients send them. */
import { isObject } from '../../search/schema/values'

/**
 * The rules of release 30 that one of release 29 stands for: one for each collection and event, named by the event.
 * @returns undefined for a rule that is not in that shape
 */
export function rulesOfRelease29(body: unknown): Record<string, unknown>[] | undefined {
  if (!isObject(body) || !isObject(body.params)) return undefined
  const { name, type, params } = body
  const { source, destination, limit, expand_query, meta_fields } = params
  if (!isObject(source) || !isObject(destination) || !Array.isArray(source.collections)) return undefined
  const { collections, enable_auto_aggregation: captures } = source
  const events = Array.isArray(source.events) ? source.events.filter(isObject) : []
  const isCounter = type === 'counter'
  const named = events.length > 0 ? events : [{ name, type: 'search' }]
  return collections.flatMap((collection) =>
    named.map((event) => ({
      name: collections.length === 1 ? event.name : `${event.name}_${collection}`,
      type,
      collection,
      event_type: isCounter ? event.type : 'search',
      rule_tag: name,
      params: {
        destination_collection: destination.collection,
        ...(isCounter
          ? { counter_field: destination.counter_field, weight: event.weight ?? 1 }
          : {
              limit: limit ?? 1_000,
              ...(expand_query !== undefined && { expand_query }),
              ...(meta_fields !== undefined && { meta_fields }),
              capture_search_requests: captures ?? true,
            }),
      },
    })),
  )
}
