/**
 * English words that say how a question is put rather than what it is about. They are dropped when a query
 * that found too little is relaxed; a query of nothing else keeps them.
 */
const WORDS = `
a about above after again against all also am an and any are as at be because been before being below between
both but by can could did do does doing down during each few for from further had has have having he her here
hers him himself his how i if in into is it its itself just me might more most must my myself no nor not now of
off on once only or other our ours out over own please same she should so some such tell than that the their
theirs them then there these they this those through to too under until up upon us very was we were what when
where which while who whom whose why will with would you your yours
`

export const STOPWORDS: ReadonlySet<string> = new Set(WORDS.trim().split(/\s+/))
