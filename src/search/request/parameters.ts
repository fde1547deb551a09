/** Refuses, by name, Typesense's search parameters that would change the results and that Parley does not have. */
import { ApiError } from '../../errors'
import { insteadOf, passes, type Refused, refused } from '../refused'
import type { SearchParameters } from '../types'

const PERSONAL = refused('Parley does not personalize searches.')

/** What is refused, by name. The tests list what becomes of all others (test/search/typesense-parameters.ts). */
export const REFUSED_PARAMETERS: Readonly<Record<string, Refused>> = {
  pre_segmented_query: refused('Parley segments queries as it segments documents.', 'false'),
  voice_query: refused('Parley does not transcribe speech.'),
  nl_query: refused('Unions, conversations and assistants take no queries in plain language.', 'false'),
  personalization_user_id: PERSONAL,
  personalization_model_id: PERSONAL,
  personalization_type: PERSONAL,
  personalization_user_field: PERSONAL,
  personalization_item_field: PERSONAL,
  personalization_event_name: PERSONAL,
  personalization_n_events: PERSONAL,
}

const REFUSED = Object.entries(REFUSED_PARAMETERS)

/**
 * Refuses parameters that would change the results and that Parley does not have. A value that asks for what Parley
 * does anyway passes, and so does a list of such values. Names that are not Typesense's are ignored, as they are there.
 * @throws ApiError 400
 */
export function requireSupported(params: SearchParameters): void {
  for (const [name, refusal] of REFUSED) {
    const given = params[name]
    if (!given || given.split(',').every((value) => passes(refusal, value.trim()))) continue
    throw new ApiError(400, `Parameter \`${name}\` is not supported. ${insteadOf(refusal)}`)
  }
}
