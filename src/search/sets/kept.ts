/** Synonym sets and curation sets, as searches read them from D1. */
import { KeptSets } from '../kept-sets'
import { type Curation, curationOf } from './curation'
import { type Synonym, synonymOf } from './synonym'

export const SYNONYM_SET = 'synonym_set'
export const CURATION_SET = 'curation_set'

export const synonymSets = new KeptSets<readonly Synonym[]>('a synonym set', SYNONYM_SET, (entries) =>
  [...entries.values()].map((entry) => synonymOf(JSON.parse(entry))),
)

/** In the order of their ids, as Typesense tries them. */
export const curationSets = new KeptSets<readonly Curation[]>('a curation set', CURATION_SET, (entries) =>
  [...entries].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => curationOf(JSON.parse(entry))),
)
