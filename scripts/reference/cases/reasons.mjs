/**
 * Why Parley answers otherwise: `better` on purpose, or something is `missing`. The text is a cell of the table.
 * @type {Record<string, ['better' | 'missing', string]>}
 */
export const REASONS = {
  stemming: ['better', '`match` finds other forms of a word'],
  terms: ['better', 'A term compares words without their case'],
  fielddata: ['better', 'A text can be sorted by'],
  highlight: ['better', 'A highlight shows the whole field'],
  virgin: ['better', 'A store that was never used answers as an empty one'],
  memorySearch: ['better', 'A search of memories without a query finds all'],
  off: ['better', 'The memory setting switches traces off too'],
  extras: ['better', '`citations`, `usage` and both generations of ids are added to `ext`; `took` is true'],
  fieldMissing: ['better', 'A hit without the context field is passed over'],
  providerFails: ['better', 'A failing provider leaves the hits there, with status 200 and `error`'],
  ragModel: ['better', 'A pipeline without `model_id` is refused when it is stored'],
  versions: ['missing', 'Versions of documents: `_version` is always 1'],
  scripts: ['missing', 'Scripts'],
  queries: ['missing', 'Queries: `fuzzy`, `regexp`, `function_score`, `wildcard` inside of a word, ranking by `should`'],
  dates: ['missing', 'Ranges of dates that are kept as text'],
  aggregations: ['missing', 'Other aggregations'],
  indices: ['missing', 'Searches of several indices'],
  filterPath: ['missing', '`filter_path`'],
}
