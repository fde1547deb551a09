/** Refuses what a caller sent: with Typesense's messages, or with why an option of Typesense's is refused. */
import { ApiError } from '../errors'

/** @throws ApiError 400 */
export function refuse(message: string): never {
  throw new ApiError(400, message)
}

/** @param unless values that ask for what Parley does anyway */
export const refused = (why: string, ...unless: string[]) => ({ why, unless })
export type Refused = ReturnType<typeof refused>

export const passes = ({ unless }: Refused, value: string): boolean => unless.includes(value)

/** What to say beside a refusal: why, and what to do. */
export function insteadOf({ why, unless }: Refused): string {
  const values = unless.filter(Boolean).map((value) => `\`${value}\``)
  return `${why} Leave it out${values.length > 0 ? `, or set it to ${values.join(' or ')}` : ''}.`
}
