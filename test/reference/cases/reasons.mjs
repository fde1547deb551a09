/**
 * Why Parley answers otherwise: `better` on purpose, or something is `missing`. The text is a cell of the table.
 * @type {Record<string, ['better' | 'missing', string]>}
 */
export const REASONS = {
  stemming: ['better', '`match` finds other forms of a word'],
  virgin: ['better', 'A store that was never used answers as an empty one'],
  memorySearch: ['better', 'A search of memories without a query finds all'],
  extras: ['better', '`citations`, `usage` and both generations of ids are added to `ext`; `took` is true'],
  fieldMissing: ['better', 'A hit without the context field is passed over'],
  providerFails: ['better', 'A failing provider leaves the hits there, with status 200 and `error`'],
  ragModel: ['better', 'A pipeline without `model_id` is refused when it is stored'],
  shards: ['better', 'There is one node, without replicas'],
  noIndex: ['better', 'An update that finds nothing makes no index'],
  lostAction: ['better', 'A `_bulk` that ends in an action without a document is refused'],
  exactTotal: ['better', 'A total is always exact'],
  msearch: ['better', 'A faulty query in `_msearch` fails alone'],
  hybridInside: [
    'better',
    '`hybrid` inside of another query is refused; OpenSearch finds hits twice, with scores below 0',
  ],
  serverFaults: ['better', 'A fault of the request is a 400, not a 500, and never taken for nothing'],
  textNumber: ['better', '`trace_number` may be a text'],
  later: [
    'better',
    'A message has `updated_time`, as in OpenSearch 3.3, and an `additional_info` that was sent as a text',
  ],
  node: ['better', 'The node is named `parley`'],
  forced: ['better', 'Changes of connectors are visible at once, and say so'],
  modelKeys: ['missing', 'What a model tells of its nodes'],
  noScore: ['missing', '`max_score` 0 of a search of no connectors, models, groups or tasks: it is `null`'],
  tracesFound: ['missing', 'Traces in the search of a memory'],
  shardPlace: ['missing', 'The index and the node in the error of a shard'],
  sizes: ['missing', 'The size of an index'],
  minScore: ['missing', '`min_score`'],
  types: ['missing', 'Some types of errors for what cannot be read'],
  versions: ['missing', 'Versions of documents: `_version` is always 1'],
  scripts: ['missing', 'Scripts'],
  queries: [
    'missing',
    'Queries: `fuzzy`, `regexp`, `function_score`, `wildcard` inside of a word, ranking by `should`',
  ],
  dates: ['missing', 'Ranges of dates that are kept as text'],
  aggregations: ['missing', 'Other aggregations'],
}
