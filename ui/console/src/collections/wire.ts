/** Collections and documents as Typesense's API tells of them, and what pages take from them: pure. */
import type * as schema from '../../../../src/search/types'
import { plain } from '../../../widget/src/plain'

export type Field = Pick<schema.Field, 'name' | 'type' | 'facet' | 'optional' | 'index' | 'num_dim' | 'embed'>

export interface Engine {
  type: string
  nodes?: string[]
  /** what it is called there: one of the three */
  collection?: string
  index?: string
  instance?: string
  account_id?: string
  /** why the cluster says nothing of it */
  error?: string
}

export interface Collection {
  name: string
  num_documents: number
  /** in seconds since 1970; absent for some clusters */
  created_at?: number
  fields: Field[]
  metadata?: Record<string, unknown>
  synonym_sets?: string[]
  curation_sets?: string[]
  /** where its documents are, if not in Parley */
  engine?: Engine
  /** vectors that are still to be made */
  pending_embeddings?: number
  /** documents whose text the embedding model does not take */
  refused_embeddings?: number
  /** why the model makes no progress, or what it refused last */
  embedding_error?: string
  /** fields on their way to another model */
  replacing_embeddings?: { name: string; model_name?: string; pending: number }[]
}

export type Doc = Record<string, unknown> & { id: string }

export interface Hit {
  document: Doc
  highlights?: { field: string; snippet?: string; snippets?: string[] }[]
  text_match?: number
  text_match_info?: { tokens_matched?: number; fields_matched?: number; best_field_weight?: number }
  vector_distance?: number
  hybrid_search_info?: { rank_fusion_score?: number }
}

export interface SearchResult {
  found: number
  /** absent if the engine does not tell */
  out_of?: number
  search_time_ms: number
  hits: Hit[]
  facet_counts?: { field_name: string; counts: { value: string; count: number }[] }[]
}

export const pathOf = (collection: string): string => `/collections/${encodeURIComponent(collection)}`

/** Fields of text that can be searched by their words. */
export const textFields = ({ fields }: Collection): string[] =>
  fields.filter(({ type, index }) => index && /^string(\[\])?$/.test(type)).map(({ name }) => name)

/** Whether a search without words is refused. */
export const needsWords = ({ engine }: Collection): boolean => engine?.type === 'ai-search'

/** Whether documents are read and written by Parley. AI Search manages its own. */
export const hasDocuments = ({ engine }: Collection): boolean => engine?.type !== 'ai-search'

/** The names of some fields, as parameters of searches have them. */
export const namesOf = ({ fields }: Collection, isMeant: (field: Field) => unknown): string =>
  fields
    .filter(isMeant)
    .map(({ name }) => name)
    .join(',')

export const isVector = ({ type }: Field): boolean => type === 'float[]'

export const vectorField = ({ fields }: Collection): Field | undefined =>
  fields.find(({ type, embed }) => type === 'float[]' && embed)

const LONGEST = 220

/** The beginning of the longest text of a document. */
export function excerpt(document: Record<string, unknown>): string {
  const texts = Object.entries(document).flatMap(([name, value]) =>
    typeof value === 'string' && !/^(id|url|parley_\w+)$/.test(name) ? [value] : [],
  )
  const longest = texts.reduce((best, text) => (text.length > best.length ? text : best), '')
  // Cut before marks are taken away: a document can be long.
  const shown = plain(longest.slice(0, LONGEST * 3))
  const title = typeof document.title === 'string' ? document.title : ''
  const body = title !== '' && shown.startsWith(title) ? shown.slice(title.length).trimStart() : shown
  return (body || shown).slice(0, LONGEST)
}
