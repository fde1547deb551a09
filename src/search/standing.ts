/** What Parley does with a parameter or a schema option of Typesense's. */

export type Standing =
  | { is: 'works' }
  /** it has an effect, but not quite Typesense's */
  | { is: 'differs'; why: string }
  /** accepted without an effect, because it changes no result */
  | { is: 'harmless'; why: string }
  /** refused, but for the values of `unless`, which ask for what Parley does anyway */
  | { is: 'refused'; why: string; unless: readonly string[] }

export const WORKS: Standing = { is: 'works' }
export const differs = (why: string): Standing => ({ is: 'differs', why })
export const harmless = (why: string): Standing => ({ is: 'harmless', why })
export const refused = (why: string, ...unless: string[]): Standing => ({ is: 'refused', why, unless })

export const passes = (standing: Standing, value: string): boolean =>
  standing.is !== 'refused' || standing.unless.includes(value)

/** What to say beside a refusal: why, and what to do. */
export function insteadOf(standing: Standing): string {
  if (standing.is !== 'refused') return ''
  const { why, unless } = standing
  const values = unless.map((value) => `\`${value}\``).join(' or ')
  return `${why} Leave it out${values && `, or set it to ${values}`}.`
}
