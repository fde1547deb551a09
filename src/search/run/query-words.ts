/** The words of a query in the index: as they were typed, corrected, joined or split, and as an expression of FTS5. */

import { wordDistance } from '../../lib/nearest'
import { respelled } from '../../models/spelling'
import { compoundsOf, stemOf, wordsOf } from '../../models/words'
import { reform } from '../changes'
import { fragment, hasRows, type SqlFragment } from '../fragment'
import type { SearchRequest } from '../request/request'
import { isShared, textCode, textColumn, textNumber } from '../schema/tables'
import { type Analyzer, analyzerOf, type TextIndex, type TokenRules, WORDS } from '../text/analyzer'
import {
  matchExpression,
  mostTelling,
  type ParsedQuery,
  parseQuery,
  relax,
  rulesOf,
  type SearchedColumn,
  type Term,
  type TextMatch,
  termOf,
  typed,
  withoutStopwords,
} from '../text/query'
import {
  COUNTED_AT_ONCE,
  corrections,
  counted,
  otherSpellings,
  similarWords,
  typosAllowed,
  type Vocabulary,
  vocabularyOf,
} from '../text/similar'
import { hasSynonyms, withoutSynonyms, withSynonyms } from '../text/synonyms'
import { TERMS } from '../text/terms'
import { type Running, runningAt, type SearchContext } from './context'
import { LongSearches, Pace } from './pace'

/** Matches documents with any of the terms. */
export const matchOf = (
  context: SearchContext,
  request: SearchRequest,
  query: ParsedQuery,
  terms: Term[],
): TextMatch => {
  const expression = (some: Term[]): string =>
    matchExpression(some, query.excluded, columnsOf(context, request), 'OR')
  const demotes = request.synonyms?.demotes && hasSynonyms(terms)
  return {
    match: expression(terms),
    table: request.index.table,
    rank: rankOf(context, request),
    ...(demotes && { first: expression(withoutSynonyms(terms)) }),
  }
}

/** Matches documents with any of the terms' words. */
export const matchOfAny = (
  context: SearchContext,
  request: SearchRequest,
  query: ParsedQuery,
  terms: Term[],
): TextMatch => matchOf(context, request, query, relax(terms))

export const columnsOf = (
  { schema }: SearchContext,
  { queryFields, index }: SearchRequest,
): SearchedColumn[] =>
  queryFields.map(({ field, prefix, typos }) => ({
    column: textColumn(schema.slots[field.name]!),
    code: textCode(schema.slots[field.name]!),
    prefix,
    typos,
    analyzer: analyzerOf(index, rulesOf(schema, field)),
  }))

/** The weights of the text columns, up to the last one that is searched. Fields that share one have their largest. */
export function rankOf({ schema }: SearchContext, { queryFields }: SearchRequest): string {
  const weights: number[] = []
  for (const { field, weight } of queryFields) {
    const number = textNumber(schema.slots[field.name]!)
    weights[number] = Math.max(weight, weights[number] ?? 0)
  }
  return `bm25(${Array.from(weights, (weight) => (weight ?? 1).toFixed(4)).join(', ')})`
}

/**
 * Only queries of at most this many words are checked for two typos in the first half of a word. In a longer query, a
 * word that no document has says little: on SciFact's claims the words found this way lower nDCG@10 by .004.
 */
const MOST_TYPED = 3
/** A word that fewer documents have may be a typo of another. */
const RARE = 10

/**
 * Adds similar words to terms: to rare words and words that the index lacks, or else to the rarest one. Other
 * searches get a turn between terms, because each reads thousands of words of the index.
 * @returns undefined if there are none
 */
export async function withSimilar(
  context: Running,
  request: SearchRequest,
  terms: readonly Term[],
): Promise<Term[] | undefined> {
  const { index, typos, queryFields, typoTokensThreshold } = request
  let any = false
  const all = [...terms]
  const isMixed = queryFields.some(
    ({ prefix, typos: own }) => prefix !== queryFields[0]!.prefix || own !== undefined,
  )
  const vocabulary = vocabularyFor(context, index, searchedColumns(context, request))
  const single = terms.flatMap(({ tokens }) => (tokens.length === 1 ? tokens : []))
  const documentsOf = documentsIn(context, vocabulary, single)
  const rarest = Math.min(...single.map(documentsOf))
  const enough = Math.max(1, typoTokensThreshold)
  const everywhere = terms.length <= MOST_TYPED
  for (const [at, term] of terms.entries()) {
    const [word, ...more] = term.tokens
    if (word === undefined || more.length > 0) continue
    if (documentsOf(word) >= Math.max(RARE, rarest + 1)) continue
    const words = await similarWords(vocabulary, word, term.prefix, typos, { enough, everywhere })
    any ||= words.length > 0
    all[at] = { ...term, corrections: [...term.corrections, ...words] }
    if (isMixed) all[at].typos = distancesOf(word, words, typosAllowed(word, typos))
    if (!(await context.pace.rest())) break
  }
  return any ? all : undefined
}

/** How far words are from a typed one. More than allowed is too far for every field. */
const distancesOf = (word: string, words: readonly string[], allowed: number): Term['typos'] =>
  new Map(
    words.map((other) => {
      const { whole, beginning } = wordDistance(word, other, allowed)
      return [other, { whole: whole > allowed ? Number.POSITIVE_INFINITY : whole, beginning }]
    }),
  )

/** The terms with corrections for words that the index lacks; undefined if there are none. */
export function correct(context: SearchContext, request: SearchRequest, terms: Term[]): Term[] | undefined {
  let any = false
  const corrected = terms.map((term) => {
    if (term.tokens.length > 1 || isKnown(context, request, term)) return term
    const columns = searchedColumns(context, request)
    const stands = (word: string) => isInIndex(context.sql, request.index, inColumns(columns, word))
    const words = corrections(context.sql, request.index, term.tokens[0]!, request.typos, stands)
    if (words.size === 0) return term
    any = true
    const typos = new Map([...words].map(([word, whole]) => [word, { whole, beginning: whole }]))
    return { ...term, corrections: [...words.keys()], typos }
  })
  return any ? corrected : undefined
}

function isKnown(context: SearchContext, request: SearchRequest, term: Term): boolean {
  const match = matchExpression([term], [], columnsOf(context, request), 'AND')
  return isInIndex(context.sql, request.index, match)
}

/** The terms with words joined or split; undefined if no document has such words. */
export const withSpacing = (
  context: SearchContext,
  request: SearchRequest,
  { excluded }: ParsedQuery,
  terms: readonly Term[],
): Term[] | undefined => {
  const columns = columnsOf(context, request)
  return splitOrJoined(terms, {
    ...knownWords(context, request),
    isFound: (some) => {
      const match = matchExpression(some, excluded, columns, 'AND')
      return isInIndex(context.sql, request.index, match)
    },
  })
}

/** In how many documents the searched index has each of some words. */
export const knownWords = (context: SearchContext, { index, queryFields }: SearchRequest) => ({
  analyzer: analyzerOf(index, rulesOf(context.schema, queryFields[0]?.field)),
  documentsOf: (words: string[]) => documentsWith(context, index, context.schema, words),
})

/** Whether the index has all words of a query. */
export function areKnown(context: SearchContext, request: SearchRequest, terms: readonly Term[]): boolean {
  const words = terms.flatMap(({ tokens }) => tokens)
  const documents = knownWords(context, request).documentsOf(words)
  return words.every((word) => documents(word) > 0)
}

const isInIndex = (sql: SqlStorage, { table }: TextIndex, match: string): boolean =>
  hasRows(sql, `SELECT 1 FROM ${table} WHERE ${table} MATCH ? LIMIT 1`, match)

/** The documents with any of the excluded words, for a query that only excludes. */
export function matchOfExcluded(
  context: SearchContext,
  request: SearchRequest,
  { terms, excluded }: ParsedQuery,
): TextMatch | undefined {
  if (terms.length > 0 || excluded.length === 0 || request.queryFields.length === 0) return undefined
  const { table } = request.index
  return { match: matchExpression([], excluded, columnsOf(context, request), 'AND'), table, rank: '' }
}

/**
 * Parses `q`, without the stopwords. Its last word may be unfinished if any field takes prefixes. As in Typesense, a plain search
 * for stopwords alone finds nothing. A question of them is asked as it is: it would get no answer otherwise.
 */
export function queryOf(
  context: SearchContext,
  { q, queryFields, stopwords, synonyms, index }: SearchRequest,
): ParsedQuery {
  const { schema } = context
  if (q === '*') return { terms: [], excluded: [] }
  const unfinished = queryFields.some(({ prefix }) => prefix)
  const analyzer = analyzerOf(index, rulesOf(schema, queryFields[0]?.field))
  const asked = parseQuery(q, analyzer, unfinished)
  const without = withoutStopwords(asked, stopwords, analyzer)
  if (without.onlyStopwords && !index.stems) return without
  const query = without.onlyStopwords ? asked : without
  const telling = mostTelling(query, (words) => documentsWith(context, index, schema, words))
  return synonyms === undefined ? telling : { ...telling, terms: withSynonyms(telling.terms, synonyms) }
}

/** The columns of a search as FTS5 names them, if they are some of several. A shared column has words of other fields too. */
function searchedColumns(context: SearchContext, request: SearchRequest): string | undefined {
  const searched = new Set(columnsOf(context, request).map(({ column }) => column))
  const isAll = Object.values(context.schema.slots).every(
    (slot) => slot.text === undefined || searched.has(textColumn(slot)),
  )
  return isAll || [...searched].some(isShared) ? undefined : `{${[...searched].join(' ')}}`
}

const inColumns = (columns: string | undefined, word: string): string =>
  `${columns === undefined ? '' : `${columns} : `}"${word.replaceAll('"', '""')}"`

/** In how many documents the searched columns have each of some words, counted as far as other searches can wait. */
function documentsIn(
  context: SearchContext,
  vocabulary: Vocabulary,
  words: string[],
): (word: string) => number {
  if (vocabulary.columns === undefined) return documentsWith(context, vocabulary.index, context.schema, words)
  const most = Math.floor(COUNTED_AT_ONCE / Math.max(1, words.length))
  const counts = new Map(counted(vocabulary, words, most).map(({ term, documents }) => [term, documents]))
  return (word) => counts.get(word) ?? 0
}

/**
 * The words of an index, for typos.
 * @param columns where they must stand: a word that only other fields have would take the place of one that finds something
 */
function vocabularyFor(context: Running, index: TextIndex, columns?: string): Vocabulary {
  const { sql } = context
  const table = index.stems ? vocabularyOf(sql, index) : TERMS
  return {
    index,
    table,
    ...(columns !== undefined && { columns }),
    read: <Row extends object>(query: SqlFragment) => context.pace.query<Row>(sql, query),
    rest: () => context.pace.rest(),
  }
}

/**
 * The request of a question with its words corrected, where the model that embeds it goes by whole words: it would
 * take a misspelled one for the pieces that it falls into. Other models know misspellings. A phrase in quotes stays.
 * @throws ApiError 503 if the model cannot be loaded
 */
export async function withoutMisspellings(
  context: SearchContext,
  request: SearchRequest,
): Promise<SearchRequest> {
  const { q, fusion, typos, typoTokensThreshold, vectorQuery } = request
  const field = vectorQuery?.field ?? request.embeddingField
  if (fusion !== 'score' || field?.embed === undefined) return request
  if (typoTokensThreshold === 0 || typos.maxTypos === 0 || q.includes('"')) return request
  const model = context.embedder(field)
  if (model.words === undefined) return request
  await model.ready?.()
  const { documentsOf } = knownWords(context, request)
  const vocabulary = vocabularyFor(runningAt(context, new Pace(new LongSearches())), WORDS)
  const corrected = await respelled(q, {
    language: model.words(),
    has: ({ folded }) => documentsOf([folded])(folded) > 0,
    like: (folded) => similarWords(vocabulary, folded, false, { ...typos, maxTypos: 1 }),
  })
  return corrected === q ? request : { ...request, q: corrected }
}

// =============================================================================
// `split_join_tokens`: words of a query that people also write as one, or the other way round. `note book` finds
// `notebook`, and `blueprint` finds `blue print`.
//
// As in Typesense, all words are joined first, then neighbours, and then single words are split. The first way that
// occurs in a document is used, in addition to the query as typed.
//
// A run of a script without blanks has to be in a document as it is. If it is in none, its words by the dictionary of the
// language may be anywhere: somebody who writes Thai or Japanese does not part the words of a query.

/** Only this many words at the beginning of a query are joined or split. */
const MOST_WORDS = 5
/** Longer words are not split. */
const MOST_LETTERS = 32
/** Ways that are looked up in the index. */
const MOST_WAYS = 64

/** Words that replace some terms. */
interface Way {
  at: number
  span: number
  words: string[]
  /** they may be anywhere in a document */
  isApart?: true
}

/** Whether a search that found so many documents splits and joins words. */
export const splitsAndJoins = ({ splitJoin }: SearchRequest, found: number): boolean =>
  splitJoin === 'always' || (splitJoin === 'fallback' && found === 0)

/** Access to the index. */
interface KnownWords {
  analyzer: Analyzer
  /** in how many documents a folded word is, for some words */
  documentsOf(words: string[]): (word: string) => number
  /** whether any document has all terms */
  isFound(terms: Term[]): boolean
}

/**
 * Adds joined or split words to the terms that they replace.
 * @returns undefined if no document has such words
 */
function splitOrJoined(
  terms: readonly Term[],
  { analyzer, documentsOf, isFound }: KnownWords,
): Term[] | undefined {
  const made = waysOf(terms)
    .slice(0, MOST_WAYS)
    .map((way) => ({ ...way, instead: way.words.flatMap((word) => termOf(word, analyzer) ?? []) }))
  const tokensOf = (some: Term[]) => some.flatMap(({ tokens }) => tokens)
  const documents = documentsOf(tokensOf(made.flatMap(({ instead }) => instead)))
  for (const { at, span, words, instead, isApart } of made) {
    const isKnown =
      instead.length === words.length && (isApart || tokensOf(instead).every((word) => documents(word) > 0))
    const known = terms[at]!.synonyms
    if (!isKnown || (known !== undefined && known.span !== span)) continue
    // The parts of a split word must be adjacent.
    const wanted = isApart
      ? instead
      : [termOf(words.join(' '), analyzer)].filter((term) => term !== undefined)
    if (wanted.length === 0 || !isFound([...terms.slice(0, at), ...wanted, ...terms.slice(at + span)]))
      continue
    const synonyms = { span, instead: [...(known?.instead ?? []), instead] }
    return terms.with(at, { ...terms[at]!, synonyms })
  }
  return undefined
}

/** The terms, and verbs with their particles as one word where a document has it: `backup` beside "back up". */
export function withCompounds(
  terms: readonly Term[],
  { analyzer, documentsOf }: Pick<KnownWords, 'analyzer' | 'documentsOf'>,
): Term[] {
  const words = terms.map((term) => {
    const folded = isWord(term) ? term.tokens[0]! : ''
    return { folded, stem: stemOf(folded) }
  })
  const made = compoundsOf(words).flatMap(({ folded }) => termOf(folded, analyzer) ?? [])
  if (made.length === 0) return [...terms]
  const documents = documentsOf(made.flatMap(({ tokens }) => tokens))
  return [...terms, ...made.filter(({ tokens }) => tokens.length === 1 && documents(tokens[0]!) > 0)]
}

/** The terms, each with its British or American spelling too where a document has it. */
export function withSpellings(
  terms: readonly Term[],
  { documentsOf }: Pick<KnownWords, 'documentsOf'>,
): Term[] {
  const others = terms.map((term) => (isWord(term) ? otherSpellings(term.tokens[0]!) : []))
  if (others.every((some) => some.length === 0)) return [...terms]
  const documents = documentsOf(others.flat())
  return terms.map((term, at) => ({
    ...term,
    corrections: [...term.corrections, ...others[at]!.filter((word) => documents(word) > 0)],
  }))
}

const isWord = ({ tokens, quoted }: Term): boolean => tokens.length === 1 && !quoted

function waysOf(terms: readonly Term[]): Way[] {
  const ways: Way[] = []
  const joined = (at: number, span: number) => {
    const some = terms.slice(at, at + span)
    if (some.every(isWord))
      ways.push({ at, span, words: [some.map((term) => typed(term) + (term.repeats ?? '')).join('')] })
  }
  const first = terms.slice(0, MOST_WORDS)
  if (terms.length > 1) joined(0, terms.length)
  if (terms.length > 2) for (let at = 0; at + 1 < first.length; at++) joined(at, 2)
  for (const [at, term] of first.entries()) {
    const words = term.tokens.length > 1 && !term.quoted ? wordsOf(typed(term)).map(({ raw }) => raw) : []
    // Its words are not parted by a sign.
    if (words.length > 1 && words.join('') === typed(term)) ways.push({ at, span: 1, words, isApart: true })
    const letters = isWord(term) ? [...term.tokens[0]!] : []
    if (letters.length > MOST_LETTERS) continue
    for (let length = letters.length - 1; length > 0; length--) {
      const words = [letters.slice(0, length).join(''), letters.slice(length).join('')]
      ways.push({ at, span: 1, words })
    }
  }
  return ways
}

// =============================================================================
// How much the words of a search say: in how many documents of the collection each is, and what the best match could score.

/** The most that FTS5 multiplies the rarity of a word by, if a document has the word very often. */
const MOST_BM25 = 2.2
/**
 * Rarity of a word that most documents have. It is not 0, so that meaning can decide questions that have only such
 * words.
 */
const LEAST_SAID = 0.5

/** A searched word with its corrections, and how much it says: its IDF in the collection. */
export interface WeighedWord {
  /** folded */
  words: string[]
  says: number
}

/** The single words of some terms, each with how much it says. Words that no document has say the most. */
export function weighWords(context: SearchContext, index: TextIndex, terms: Term[]): WeighedWord[] {
  const words = relax(terms)
    .filter(({ tokens }) => tokens.length === 1)
    .map(({ tokens, corrections: others, synonyms }) => [...tokens, ...others, ...singleWords(synonyms)])
  const documentsOf = documentsWith(context, index, context.schema, words.flat())
  const all = context.count()
  return words.map((alternatives) => {
    const documents = alternatives.reduce((sum, word) => sum + documentsOf(word), 0)
    const says = Math.log((all - documents + 0.5) / (documents + 0.5))
    return { words: alternatives, says: Math.max(LEAST_SAID, says || 0) }
  })
}

/** The synonyms of one word. */
const singleWords = (synonyms: Term['synonyms']): string[] =>
  (synonyms?.instead ?? []).flatMap((terms) =>
    terms.length === 1 && terms[0]!.tokens.length === 1 ? terms[0]!.tokens : [],
  )

/**
 * The BM25 of a document that has all words as often as can count: FTS5 multiplies the IDF of a word by at most 2.2
 * (k1 + 1). Words that no document has count too, because then part of the question is not answered.
 */
export const idealScore = (words: readonly WeighedWord[]): number =>
  words.reduce((sum, { says }) => sum + MOST_BM25 * says, 0)

/** In how many documents the index has each of some folded words. */
export function documentsWith(
  context: SearchContext,
  index: TextIndex,
  rules: TokenRules,
  words: string[],
): (word: string) => number {
  const { sql } = context
  const { form } = analyzerOf(index, rules)
  const forms = [...new Set(words.map(form))]
  const rows = sql.exec<{ term: string; doc: number }>(
    `SELECT term, doc FROM json_each(?) w CROSS JOIN ${vocabularyOf(sql, index)} v ON v.term = w.value`,
    JSON.stringify(forms),
  )
  const documents = new Map(rows.toArray().map(({ term, doc }) => [term, doc]))
  return (word) => documents.get(form(word)) ?? 0
}

// =============================================================================
// Reads the places of words, and tells whether the index has a longer word than the one that was typed.

/** Longer words that begin with a word, which is bound twice. */
const LONGER = 'WHERE term >= ? || char(1) AND term <= ? || char(1114111) LIMIT 1'

/** Words that FTS5 leaves as they are. */
const PLAIN = /^[a-z0-9]+$/

/**
 * The terms, and of the last one whether the index has longer words that begin with it. FTS5 first collects the places of all
 * of those, in each statement of a search.
 */
export function withLongest(context: Running, request: SearchRequest, terms: Term[]): Term[] {
  const last = terms.at(-1)!
  const [word = '', ...more] = last.tokens
  if (!last.prefix || more.length > 0 || request.index.table !== WORDS.table || !PLAIN.test(word))
    return terms
  const isSame = columnsOf(context, request).every(({ analyzer, code }) => {
    const { text } = analyzer.phrase(typed(last))
    return !code && text === word && analyzer.completions(word).length === 0
  })
  if (!isSame || hasSynonyms(terms)) return terms
  const isNone = (rows: readonly object[]) => rows.length === 0
  // The table of terms is quick to ask, but it may have words that no document has any more, and lacks very long ones.
  const isLongest =
    isNone(context.pace.query(context.sql, fragment(`SELECT 1 FROM ${TERMS} ${LONGER}`, word, word))) &&
    isNone(readPlaces(context, fragment(`SELECT 1 FROM word_instances ${LONGER}`, word, word)))
  return isLongest ? terms.with(-1, { ...last, longest: word }) : terms
}

/**
 * Queries the places of words. Their table is made on first use: to ask for it each time would count as a write. It shows the index
 * in another form, so replies that were kept stay valid.
 */
function readPlaces<Row extends object>({ sql, pace }: Running, query: SqlFragment): Row[] {
  const read = () => pace.query<Row>(sql, query)
  try {
    return read()
  } catch {
    const table = `CREATE VIRTUAL TABLE IF NOT EXISTS word_instances USING fts5vocab('${WORDS.table}', 'instance')`
    reform(sql, () => sql.exec(table))
    return read()
  }
}
