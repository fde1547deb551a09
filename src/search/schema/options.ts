/** Typesense's options of fields and collections that would change results and that Parley does not have. */
import { ApiError } from '../../errors'
import { insteadOf, passes, type Refused, refused } from '../refused'

type Refusals = Readonly<Record<string, Refused>>

const PERSONAL = refused('Parley does not personalize searches.', '')

/** Of `embed` and its `model_config`. */
export const REFUSED_OF_EMBEDDINGS: Refusals = {
  mapping: PERSONAL,
  personalization_type: PERSONAL,
}

export const REFUSED_OF_COLLECTIONS: Refusals = {
  voice_query_model: refused('Parley does not transcribe speech.', ''),
}

/**
 * Refuses options by name.
 * @param what names the owner: "of the field `x`"
 * @throws ApiError 400
 */
export function requireOptions(
  refusals: Refusals,
  given: Readonly<Record<string, unknown>>,
  what: string,
): void {
  for (const [name, refusal] of Object.entries(refusals)) {
    const value = given[name]
    if (value === undefined || value === null || passes(refusal, asText(value))) continue
    throw new ApiError(400, `The option \`${name}\`${what} is not supported. ${insteadOf(refusal)}`)
  }
}

/** Empty lists and objects ask for nothing, like an empty text. */
const asText = (value: unknown): string =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0 ? '' : String(value)
