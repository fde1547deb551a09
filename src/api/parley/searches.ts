/** The searches of a question: as the request gives them, or made up from what the collections hold. */
import type { InferOutput } from 'valibot'
import type { Access } from '../../auth/access'
import { type Note, requireAccess } from '../../auth/admit'
import { countSearches, requireFewSearches } from '../../auth/searches'
import { ApiError } from '../../errors'
import { findOutline } from '../../registry/outlines'
import { searchableFields } from '../../search/collection/outline'
import { questionDefaults } from '../../search/collection/question'
import type { SearchParameters } from '../../search/types'
import type { PlannedSearch } from '../../turn/request'
import { fill, override } from '../edge/parameters'
import { planSearch } from '../edge/plan'
import { operations } from './operations'
import type { Ask } from './schemas'

type AskBody = InferOutput<typeof Ask>

/** Which parameters of a scoped key are the conversation's and not its searches'. */
export const CONVERSATION = ['q', 'user_id', 'x-typesense-user-id']

/**
 * The searches to run, each allowed and its collection found.
 *
 * A search's own parameters win over those that are common to all; those of a scoped key win over both.
 *
 * @param note what the log will say of a refusal
 * @throws ApiError 400 for too many searches and for a filter that is none, 401, 404 for an unknown collection, 429
 */
export async function planSearches(
  env: Cloudflare.Env,
  access: Access,
  note: Note,
  {
    question: _q,
    conversation_id: _c,
    model: _m,
    stream: _s,
    followups: _f,
    collections,
    searches,
    ...common
  }: AskBody,
): Promise<PlannedSearch[]> {
  const wanted = searches ?? (collections ?? []).map((collection) => ({ collection }))
  const embedded: SearchParameters = { ...access.embedded }
  for (const name of CONVERSATION) delete embedded[name]
  requireFewSearches(access, wanted.length)
  for (const { collection } of wanted) {
    requireAccess(access, undefined, operations.ask.actions, embedded.collection ?? collection, note)
  }
  await countSearches(env, Array(wanted.length - 1).fill(access))
  return Promise.all(
    wanted.map(async ({ collection, ...own }) => {
      const name = embedded.collection ?? collection
      const given = override(fill(asParameters(own), asParameters(common)), embedded)
      return planSearch(env, access, name, given.query_by ? given : await withDefaults(env, name, given))
    }),
  )
}

export const asParameters = (given: Record<string, unknown>): SearchParameters =>
  Object.fromEntries(Object.entries(given).map(([name, value]) => [name, String(value)]))

/** Searches all that can be searched, and leaves vectors out of what comes back. */
async function withDefaults(
  env: Cloudflare.Env,
  collection: string,
  given: SearchParameters,
): Promise<SearchParameters> {
  const outline = await findOutline(env, collection)
  const fields = searchableFields(outline)
  if (fields.length === 0) {
    throw new ApiError(
      400,
      `Collection \`${collection}\` has no field of text that is indexed. Give \`query_by\`.`,
    )
  }
  const { vectors } = outline
  const selected = given.include_fields !== undefined || given.exclude_fields !== undefined
  return {
    ...questionDefaults(outline, fields),
    query_by: fields.join(','),
    ...(vectors.length > 0 && !selected && { exclude_fields: vectors.join(',') }),
    ...given,
  }
}
