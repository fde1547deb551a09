/** Completions of an unfinished word in an index of stems. */

import { stemmer } from 'stemmer'
import { once } from '../../lib/once'

// Endings that Porter's stemmer removes, combined ones included.
const endings = once(() =>
  `s es ed ing ies ied ying ly ment ments ness nesses ful fully fulness less al ally als ial ially ical ically
icals ic ics able ably ible ibly ability ibility ance ances ence ences ancy ency ant ants ent ents ation ations
ational ationally ator ators ition itions ion ions ional ionally ize izes ized izing izer izers ization
izations ise ised ising isation ism isms ist ists ity ities iti ive ives ively iveness ous ously ousness er ers
eness ate ates ated ating y e`.split(/\s+/),
)

/**
 * Words that an unfinished word may become but that the prefix query misses, because the stemmer cuts them shorter
 * than what was typed.
 *
 * The index holds stems. So the prefix query for `documentati` misses `document`, the stem of `documentation`. Each
 * completion begins with what was typed and has a stem that does not. Whole words are returned because FTS5 stems the
 * words of a query, and the stem of a stem can differ (university, univers, univer).
 */
export function completions(typed: string): string[] {
  if (!/^[a-z]{4,}$/.test(typed)) return []
  const typedStem = stemmer(typed)
  const byStem = new Map<string, string>()
  for (const ending of endings()) {
    // A doubled consonant only occurs before -ing and -ed: stopp, stopped, stop.
    const doubled = /([b-df-hj-np-tv-z])\1$/.test(typed) && (ending === 'ing' || ending === 'ed')
    for (let shared = doubled ? 0 : 1; shared <= Math.min(ending.length, typed.length - 3); shared++) {
      const begun = ending.slice(0, shared)
      if (!typed.endsWith(begun)) continue
      const root = typed.slice(0, typed.length - shared)
      const word = root + ending
      const stem = stemmer(word)
      // Stems have at least three letters: `string` is not a form of `str`, nor `thing` of `th`.
      if (stem.length < 3 || stem.startsWith(typedStem) || !/[aeiouy]/.test(stem)) continue
      const known = byStem.get(stem)
      if (known === undefined || word.length < known.length) byStem.set(stem, word)
    }
  }
  return [...byStem.values()]
}
