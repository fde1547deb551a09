/**
 * English words that phrase a question but do not say what it is about. A query that found too little is relaxed by
 * dropping them, unless it has nothing else.
 */
import { once } from '../../lib/once'

const WORDS = `
a about above after again against all also am an and any are as at be because been before being below between
both but by can could did do does doing down during each few for from further had has have having he her here
hers him himself his how i if in into is it its itself just me might more most must my myself no nor not now of
off on once only or other our ours out over own please same she should so some such tell than that the their
theirs them then there these they this those through to too under until up upon us very was we were what when
where which while who whom whose why will with would you your yours
`

const stopwords = once((): ReadonlySet<string> => new Set(WORDS.trim().split(/\s+/)))

/** @param word in small letters */
export const isStopword = (word: string): boolean => stopwords().has(word)
