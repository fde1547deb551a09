/** Plans the searches of an assistant's turn, with the request's changes. */
import type { Access } from '../../auth/access'
import { countSearches } from '../../auth/limits'
import { ApiError } from '../../errors'
import type { Assistant, AssistantSearch } from '../../registry/assistants'
import { findOutline } from '../../registry/names'
import { hiddenFields, type Outline, searchableFields } from '../../search/collection/outline'
import { quoted } from '../../search/filter/print'
import { weightsOf } from '../../search/request/question'
import type { SearchParameters } from '../../search/types'
import type { PlannedSearch } from '../../turn/request'
import { asParameters, listed, override, searchParametersOf } from './parameters'
import { orMissing, planForQuestion } from './plan'

/** Words alone, meaning alone, or both fused. */
export type RetrievalMode = 'text' | 'vectors' | 'hybrid'

/** Changes of a request to its assistant's searches. The protocol has checked that the assistant allows it. */
export interface SearchChanges {
  /** documents for the model, from all searches together; 0: none */
  top?: number
  mode?: RetrievalMode
  /** the embedding field to search, in collections that have it */
  vectorField?: string
  /** a filter in addition to those of the assistant and the key */
  filterBy?: string
  /** documents with a lower score stay out of the prompt (turn/retrieve.ts) */
  minimumScore?: number
  /** whether a reranking model orders the best hits, if there is one */
  rerank?: boolean
  /** documents that it gives a lower score stay out of the prompt */
  minimumRerankScore?: number
  includeCategory?: string
  excludeCategory?: string
}

/** A search and its mode. */
export interface AssistantRetrieval {
  search: PlannedSearch
  mode: RetrievalMode
}

/**
 * The searches to run, which are counted towards the rate of the key. The request's changes override the assistant's parameters,
 * and a scoped key overrides both. All their filters apply. A collection that is gone is the error of its search alone.
 * @param assistant one that is open to the key
 * @throws ApiError 400 for a change that no collection supports, 429
 */
export async function planRetrieval(
  env: Cloudflare.Env,
  access: Access,
  assistant: Assistant,
  changes: SearchChanges,
): Promise<AssistantRetrieval[]> {
  const { searches = [], category_field: categoryField } = assistant
  const found = await Promise.all(
    searches.map(async (search) => ({
      search,
      outline: await orMissing(access, search.collection, () => findOutline(env, search.collection)),
    })),
  )
  const all = found.flatMap(({ search, outline }) => ('name' in outline ? { search, outline } : []))
  if (all.length > 0) {
    requirePossible(
      all.map(({ outline }) => outline),
      changes,
      assistant,
    )
  }
  const missing = found.flatMap(({ outline }) =>
    'name' in outline || changes.top === 0 ? [] : { search: outline, mode: 'text' as const },
  )
  const able = all.filter(
    ({ outline }) => changes.includeCategory === undefined || outline.indexed.includes(categoryField),
  )
  const shares = changes.top === undefined ? undefined : share(changes.top, able.length)
  const wanted = changes.top ? able.filter((_, index) => shares![index]! > 0) : able
  if (assistant.strict && changes.minimumRerankScore !== undefined && !canRerank(env)) {
    throw new ImpossibleChange('minimumRerankScore', 'there is no model here that ranks anew')
  }
  const embedded = searchParametersOf(access.embedded)
  const planned = await Promise.all(
    wanted.map(async ({ search, outline }, index) => {
      const { collection, ...own }: AssistantSearch = search
      const changed: SearchParameters = {
        ...(shares && { per_page: String(shares[index]) }),
        ...filterOf(outline, changes, categoryField),
        ...(changes.rerank && canRerank(env) && own.group_by === undefined && RERANKING),
      }
      const { params, mode } = inMode(override(asParameters(own), changed), outline, changes)
      const planned = await orMissing(access, collection, () =>
        planForQuestion(env, access, collection, override(params, embedded)),
      )
      const { minimumScore, minimumRerankScore } = changes
      return {
        search: {
          ...planned,
          ...(minimumScore !== undefined && { minimumScore }),
          ...(minimumRerankScore !== undefined && { minimumRerankScore }),
        },
        mode,
      }
    }),
  )
  const retrievals = [...planned, ...missing]
  await countSearches(env, Array(Math.max(0, retrievals.length - 1)).fill(access))
  return retrievals
}

/** The reranker on Workers AI. It reads fifty hits, as Azure's does. */
const RERANKING = { rerank_model: 'cloudflare/@cf/baai/bge-reranker-base', rerank_top: '50' }

/** Whether one of the searches is by vectors of this field. */
export const searchesBy = (field: string, retrievals: readonly AssistantRetrieval[]): boolean =>
  retrievals.some(({ search }) => listed(search.params.query_by).includes(field))

/** Whether there is a reranking model. */
export const canRerank = (env: Pick<Cloudflare.Env, 'AI_BACKEND'>): boolean => env.AI_BACKEND === 'workers-ai'

/** Shares `top` documents among the searches as evenly as possible; the first ones get the rest. */
const share = (top: number, searches: number): number[] =>
  Array.from({ length: searches }, (_, index) => Math.floor((top + searches - 1 - index) / searches))

/** The field that front ends of the AI Chat Protocol name with each question, whatever the collections have. */
const USUAL_VECTORS = 'embedding'

/** A change that none of the assistant's collections supports. */
export class ImpossibleChange extends ApiError {
  constructor(
    readonly change: keyof SearchChanges,
    message: string,
  ) {
    super(400, message)
  }
}

/** @throws ImpossibleChange if no collection has what the change needs */
function requirePossible(
  outlines: Outline[],
  changes: SearchChanges,
  { category_field: categoryField, strict }: Assistant,
): void {
  const { mode, vectorField, includeCategory, excludeCategory } = changes
  if (mode === 'vectors' && !outlines.every(({ embeddings }) => embeddings.length > 0)) {
    throw new ImpossibleChange(
      'mode',
      'A search by vectors alone needs an embedding field in every collection.',
    )
  }
  const fields = outlines.flatMap(({ embeddings }) => embeddings)
  const matters = strict || (fields.length > 0 && vectorField !== USUAL_VECTORS)
  if (vectorField !== undefined && matters && !fields.includes(vectorField)) {
    throw new ImpossibleChange('vectorField', `No collection has an embedding field \`${vectorField}\`.`)
  }
  const byCategory = includeCategory !== undefined || excludeCategory !== undefined
  if (byCategory && !outlines.some(({ indexed }) => indexed.includes(categoryField))) {
    const change = includeCategory === undefined ? 'excludeCategory' : 'includeCategory'
    throw new ImpossibleChange(
      change,
      `No collection has a field \`${categoryField}\` to choose categories by.`,
    )
  }
}

function filterOf(
  { indexed }: Outline,
  { filterBy, includeCategory, excludeCategory }: SearchChanges,
  categoryField: string,
): SearchParameters {
  const categorised = indexed.includes(categoryField)
  const filters: SearchParameters[] = []
  if (includeCategory !== undefined && categorised) {
    filters.push({ filter_by: `${categoryField}:=${quoted(includeCategory)}` })
  }
  if (excludeCategory !== undefined && categorised) {
    filters.push({ filter_by: `${categoryField}:!=${quoted(excludeCategory)}` })
  }
  if (filterBy) filters.push({ filter_by: filterBy })
  return filters.reduce((both, filter) => override(both, filter), {})
}

/** Parameters with one entry for each field of `query_by`. They are dropped when the fields change. */
const BY_FIELD = ['query_by_weights', 'prefix', 'infix', 'num_typos']

/** Parameters for a search by words, by meaning or by both, and its mode. */
function inMode(
  given: SearchParameters,
  outline: Outline,
  { mode, vectorField }: SearchChanges,
): { params: SearchParameters; mode: RetrievalMode } {
  const { embeddings } = outline
  const isEmbedding = (name: string) => embeddings.includes(name)
  const own = given.query_by ? listed(given.query_by) : searchableFields(outline)
  const texts = own.filter((name) => !isEmbedding(name))
  const vector =
    vectorField !== undefined && isEmbedding(vectorField)
      ? vectorField
      : (own.find(isEmbedding) ?? embeddings[0])
  const bySense = vector === undefined ? [] : [vector]
  const byWords = texts.length > 0 ? texts : outline.texts
  const fields =
    mode === undefined && vectorField === undefined
      ? own
      : { text: byWords, vectors: bySense, hybrid: [...bySense, ...byWords] }[mode ?? 'hybrid']
  if (fields.length === 0 && !given.vector_query) {
    throw new ApiError(
      400,
      `Collection \`${outline.name}\` has no field of text that is indexed. Give \`query_by\`.`,
    )
  }
  const params: SearchParameters = {
    // A caller who names the fields also decides how to search them.
    ...(!given.query_by && weightsOf(fields)),
    ...given,
    ...(fields.length > 0 && { query_by: fields.join(',') }),
  }
  if (params.query_by !== given.query_by) {
    for (const name of BY_FIELD) if (params[name]?.includes(',')) delete params[name]
  }
  if (mode === 'text') delete params.vector_query
  if (!params.include_fields) {
    // Nobody reads vectors, and they are too long for a line of a stream.
    const hidden = [...new Set([...listed(params.exclude_fields), ...hiddenFields(outline)])]
    if (hidden.length > 0) params.exclude_fields = hidden.join(',')
  }
  const senses = fields.some(isEmbedding) || params.vector_query !== undefined
  const words = fields.some((name) => !isEmbedding(name))
  return { params, mode: senses && words ? 'hybrid' : senses ? 'vectors' : 'text' }
}
