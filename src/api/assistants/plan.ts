/** From an assistant, and what a request changes of it, to the searches of its turn. */
import type { Access } from '../../auth/access'
import type { Assistant, AssistantSearch } from '../../conversation/assistants'
import type { PlannedSearch } from '../../conversation/request'
import { ApiError, unwrap } from '../../errors'
import { collectionObject, findCollection } from '../../search/catalog'
import { isVector } from '../../search/layout'
import type { CollectionSchema, SearchParameters } from '../../search/types'
import { asParameters, CONVERSATION, searchableFields } from '../parley/searches'
import { listed, override } from '../typesense/parameters'
import { planSearch } from '../typesense/plan'

/** Words alone, meaning alone, or both fused. */
export type RetrievalMode = 'text' | 'vectors' | 'hybrid'

/** What a request changes of its assistant's searches. Its protocol has seen to it that the assistant allows it. */
export interface SearchChanges {
  /** documents that the model is given, of all searches together; 0: none */
  top?: number
  mode?: RetrievalMode
  /** the embedding field to search, where a collection has it */
  vectorField?: string
  /** a filter that holds besides those of the assistant and of the key */
  filterBy?: string
  /** documents that score less stay out of the prompt (conversation/retrieval.ts) */
  minimumScore?: number
  /** whether a model puts the best hits in its own order, where there is one */
  rerank?: boolean
  /** documents that this model scores less stay out of the prompt */
  minimumRerankScore?: number
  includeCategory?: string
  excludeCategory?: string
}

/** A search, and how it will find. */
export interface AssistantRetrieval {
  search: PlannedSearch
  mode: RetrievalMode
}

/**
 * The searches to run. A request's changes go over the assistant's own parameters, those of a scoped key over both;
 * filters of all of them hold.
 *
 * @param assistant one that is open to the key
 * @throws ApiError 400 for a change that no collection can follow, 404 for a collection that is gone
 */
export async function planRetrieval(
  env: Cloudflare.Env,
  access: Access,
  assistant: Assistant,
  changes: SearchChanges,
): Promise<AssistantRetrieval[]> {
  const { searches = [], category_field: categoryField } = assistant
  const shares = changes.top === undefined ? undefined : share(changes.top, searches.length)
  const wanted = changes.top ? searches.filter((_, index) => shares![index]! > 0) : searches
  const schemas = await Promise.all(wanted.map(({ collection }) => schemaOf(env, collection)))
  requirePossible(schemas, changes, categoryField)
  if (changes.minimumRerankScore !== undefined && !canRerank(env)) {
    throw new ImpossibleChange('minimumRerankScore', 'there is no model here that ranks anew')
  }
  const embedded: SearchParameters = { ...access.embedded }
  for (const name of CONVERSATION) delete embedded[name]
  return Promise.all(
    wanted.map(async (search, index) => {
      const { collection, ...own }: AssistantSearch = search
      const schema = schemas[index]!
      const changed: SearchParameters = {
        ...(shares && { per_page: String(shares[index]) }),
        ...filterOf(schema, changes, categoryField),
        ...(changes.rerank && canRerank(env) && own.group_by === undefined && RERANKING),
      }
      const { params, mode } = inMode(override(asParameters(own), changed), schema, changes)
      const planned = await planSearch(env, collection, override(params, embedded))
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
}

/** Of the model on Workers AI: it reads fifty hits, as Azure's does. */
const RERANKING = { rerank_model: 'cloudflare/@cf/baai/bge-reranker-base', rerank_top: '50' }

/** Whether a model can rank hits anew. */
export const canRerank = (env: Pick<Cloudflare.Env, 'AI_BACKEND'>): boolean => env.AI_BACKEND === 'workers-ai'

/** `top` documents among searches as evenly as can be, the first ones having more. */
const share = (top: number, searches: number): number[] =>
  Array.from({ length: searches }, (_, index) => Math.floor((top + searches - 1 - index) / searches))

async function schemaOf(env: Cloudflare.Env, collection: string): Promise<CollectionSchema> {
  const { objectId } = await findCollection(env, collection)
  return unwrap(await collectionObject(env, objectId).schema())
}

const embeddings = ({ fields }: CollectionSchema): string[] =>
  fields.filter((field) => field.index && field.embed).map(({ name }) => name)

const hasField = ({ fields }: CollectionSchema, name: string): boolean =>
  fields.some((field) => field.name === name && field.index)

/** A change that no collection of the assistant can follow. */
export class ImpossibleChange extends ApiError {
  constructor(
    readonly change: keyof SearchChanges,
    message: string,
  ) {
    super(400, message)
  }
}

/** @throws ImpossibleChange for what not one of the collections has */
function requirePossible(schemas: CollectionSchema[], changes: SearchChanges, categoryField: string): void {
  const { mode, vectorField, includeCategory, excludeCategory } = changes
  if (mode === 'vectors' && !schemas.every((schema) => embeddings(schema).length > 0)) {
    throw new ImpossibleChange(
      'mode',
      'A search by vectors alone needs an embedding field in every collection.',
    )
  }
  if (vectorField !== undefined && !schemas.some((schema) => embeddings(schema).includes(vectorField))) {
    throw new ImpossibleChange('vectorField', `No collection has an embedding field \`${vectorField}\`.`)
  }
  const byCategory = includeCategory !== undefined || excludeCategory !== undefined
  if (byCategory && !schemas.some((schema) => hasField(schema, categoryField))) {
    const change = includeCategory === undefined ? 'excludeCategory' : 'includeCategory'
    throw new ImpossibleChange(
      change,
      `No collection has a field \`${categoryField}\` to choose categories by.`,
    )
  }
}

/** Between backticks all is text; a backtick itself is punctuation, which no comparison sees. */
const quoted = (value: string): string => `\`${value.replaceAll('`', ' ')}\``

function filterOf(
  schema: CollectionSchema,
  { filterBy, includeCategory, excludeCategory }: SearchChanges,
  categoryField: string,
): SearchParameters {
  const categorised = hasField(schema, categoryField)
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

/** Lists with an entry for each field of `query_by`: they fit no other fields. */
const BY_FIELD = ['query_by_weights', 'prefix', 'infix', 'num_typos']

/** Parameters that search by words, by meaning or by both, and what of these it came to. */
function inMode(
  given: SearchParameters,
  schema: CollectionSchema,
  { mode, vectorField }: SearchChanges,
): { params: SearchParameters; mode: RetrievalMode } {
  const all = embeddings(schema)
  const isEmbedding = (name: string) => all.includes(name)
  const own = given.query_by ? listed(given.query_by) : searchableFields(schema)
  const texts = own.filter((name) => !isEmbedding(name))
  const vector =
    vectorField !== undefined && isEmbedding(vectorField) ? vectorField : (own.find(isEmbedding) ?? all[0])
  const bySense = vector === undefined ? [] : [vector]
  const byWords = texts.length > 0 ? texts : searchableFields(schema).filter((name) => !isEmbedding(name))
  const fields =
    mode === undefined && vectorField === undefined
      ? own
      : { text: byWords, vectors: bySense, hybrid: [...bySense, ...byWords] }[mode ?? 'hybrid']
  if (fields.length === 0 && !given.vector_query) {
    throw new ApiError(
      400,
      `Collection \`${schema.name}\` has no field of text that is indexed. Give \`query_by\`.`,
    )
  }
  const params: SearchParameters = { ...given, ...(fields.length > 0 && { query_by: fields.join(',') }) }
  if (params.query_by !== given.query_by) {
    for (const name of BY_FIELD) if (params[name]?.includes(',')) delete params[name]
  }
  if (mode === 'text') delete params.vector_query
  if (!params.include_fields) {
    // Nobody reads vectors, and a stream of lines has no room for them.
    const vectors = schema.fields.filter(isVector).map(({ name }) => name)
    const hidden = [...new Set([...listed(params.exclude_fields), ...vectors])]
    if (hidden.length > 0) params.exclude_fields = hidden.join(',')
  }
  const senses = fields.some(isEmbedding) || params.vector_query !== undefined
  const words = fields.some((name) => !isEmbedding(name))
  return { params, mode: senses && words ? 'hybrid' : senses ? 'vectors' : 'text' }
}
