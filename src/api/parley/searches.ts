/** Plans the searches of a question: from the request, or by default from the collections' schemas. */
import type { InferOutput } from 'valibot'
import type { Access } from '../../auth/access'
import { countSearches, type Note, requireAccess, requireFewSearches } from '../../auth/authenticate'
import { badRequest } from '../../errors'
import { findOutline } from '../../registry/collections'
import { hiddenFields, searchableFields } from '../../search/collection/outline'
import { weightsOf } from '../../search/request/question'
import type { SearchParameters } from '../../search/types'
import type { PlannedSearch } from '../../turn/request'
import { asParameters, fill, override, searchParametersOf } from '../http/body'
import { orMissing, planForQuestion } from '../http/plan'
import { operations } from './operations'
import { Ask } from './schemas'

type AskBody = InferOutput<ReturnType<typeof Ask>>

/**
 * The searches to run, after checking the key for each collection.
 *
 * A search's own parameters override the common ones; those of a scoped key override both.
 *
 * @param note gets the reason of a refusal, for the log
 * @throws ApiError 400 for too many searches or an invalid filter, 401, 404 for an unknown collection of a single search, 429
 */
export async function planSearches(
  env: Cloudflare.Env,
  access: Access,
  note: Note,
  { collections, searches, ...rest }: AskBody,
): Promise<PlannedSearch[]> {
  const { entries } = Ask()
  const common = Object.fromEntries(Object.entries(rest).filter(([name]) => !Object.hasOwn(entries, name)))
  const wanted = searches ?? (collections ?? []).map((collection) => ({ collection }))
  const embedded = searchParametersOf(access.embedded)
  requireFewSearches(access, wanted.length)
  for (const { collection } of wanted) {
    requireAccess(access, undefined, operations.ask.actions, embedded.collection ?? collection, note)
  }
  await countSearches(env, Array(wanted.length - 1).fill(access))
  return Promise.all(
    wanted.map(async ({ collection, ...own }) => {
      const name = embedded.collection ?? collection
      const given = override(fill(asParameters(own), asParameters(common)), embedded)
      const plan = async () =>
        planForQuestion(env, access, name, given.query_by ? given : await withDefaults(env, name, given))
      // The only search has its own status.
      return wanted.length > 1 ? orMissing(access, name, plan) : plan()
    }),
  )
}

/** Default parameters: search all searchable fields, and return neither vectors nor the notes of an import. */
async function withDefaults(
  env: Cloudflare.Env,
  collection: string,
  given: SearchParameters,
): Promise<SearchParameters> {
  const outline = await findOutline(env, collection)
  const fields = searchableFields(outline)
  if (fields.length === 0) {
    throw badRequest(`Collection \`${collection}\` has no field of text that is indexed. Give \`query_by\`.`)
  }
  const hidden = hiddenFields(outline)
  const selected = given.include_fields !== undefined || given.exclude_fields !== undefined
  return {
    ...weightsOf(fields),
    query_by: fields.join(','),
    ...(hidden.length > 0 && !selected && { exclude_fields: hidden.join(',') }),
    ...given,
  }
}
