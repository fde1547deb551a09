/**
 * Finds words of an index that are similar to a mistyped one.
 *
 * It does not compare all words. In a word with one typo, either the first half is right or the rest is. So it looks
 * up the words that begin with the first half, or with any variant of that half with one typo. Only if no word has one
 * typo, it compares all words for two typos in the first half: then the rest is right.
 */
import { wordDistance } from '../../lib/nearest'
import { fragment, limited, type SqlFragment } from '../fragment'
import { stem, type TextIndex } from './analyzer'
import { TERMS } from './terms'

/** Longer words are not corrected: the variants of one are bound as one value, and SQLite takes 2 MB. */
const MOST_LETTERS = 32
/** Prefixes that are looked up before other searches get a turn. */
const AT_ONCE = 256
/** How many documents of a word are counted at first, and at most. */
const FIRST_COUNT = 32
const LAST_COUNT = 16_384
/** Documents that are counted before other searches get a turn. */
export const COUNTED_AT_ONCE = 65_536
/** Letters that may stand in place of one. */
const MOST_ALPHABET = 128
/** Words of the index that are compared before other searches get a turn. */
const COMPARED_AT_ONCE = 65_536
/** Words to search for in place of one. */
const MOST_SIMILAR = 16
/** The letters of Latin script. For other scripts, the code points around a letter are tried. */
const LATIN = [...'abcdefghijklmnopqrstuvwxyz0123456789']
const LATIN_WORD = /^[a-z0-9]+$/
const A_BLOCK = 64
const LAST = '\u{10ffff}'

/** Access to the words of an index. */
export interface Vocabulary {
  index: TextIndex
  /** the table of its words, in a column `term`. It may have words that no document has any more */
  table: string
  /** in which columns a word must stand, as FTS5 names them (`{t0 t3}`); absent: in any */
  columns?: string
  /** runs a query */
  read<Row extends object>(query: SqlFragment): Row[]
  /** gives other searches a turn; false when the search has to end */
  rest(): Promise<boolean>
}

/**
 * The nearest words: first words that differ by a typo, then words whose beginning differs by one. Among equals, the
 * most frequent come first.
 * @param isUnfinished whether the word may be unfinished
 * @param enough if the nearest words are in fewer documents than this, words with one more typo follow
 * @param everywhere also try two typos in the first half, if no word has one
 * @returns the nearest words, without the word itself; none for words of more than 32 letters
 */
export async function similarWords(
  vocabulary: Vocabulary,
  word: string,
  isUnfinished: boolean,
  rules: TypoRules,
  { enough = 1, everywhere = false }: { enough?: number; everywhere?: boolean } = {},
): Promise<string[]> {
  const allowed = typosAllowed(word, rules)
  if (allowed === 0 || [...word].length > MOST_LETTERS) return []
  const found = await nearWords(vocabulary, word, isUnfinished, allowed)
  const similar: string[] = []
  let documents = 0
  for (let distance = 1; distance <= allowed && documents < enough; distance++) {
    const near = found.filter((each) => each.distance === distance)
    if (distance === 2 && everywhere && vocabulary.table === TERMS) {
      near.push(...(await wordsEndingAlike(vocabulary, word, isUnfinished)))
    }
    for (const isWhole of [true, false]) {
      const most = MOST_SIMILAR - similar.length
      if (most === 0) return similar
      for (const [term, count] of await mostFrequent(vocabulary, namesOf(near, isWhole), most)) {
        similar.push(term)
        documents += count
      }
    }
  }
  return similar
}

/** The words with two typos in the first half. If `isUnfinished`, also words that begin with such a word. */
async function wordsEndingAlike(
  { table, read, rest }: Vocabulary,
  word: string,
  isUnfinished: boolean,
): Promise<NearWord[]> {
  const letters = [...word]
  const half = Math.floor(letters.length / 2)
  const end = letters.slice(half).join('')
  const most = isUnfinished ? Number.MAX_SAFE_INTEGER : letters.length + 2
  const found: NearWord[] = []
  for (let after = ''; ; ) {
    const [last] = read<{ term: string }>(
      fragment(
        `SELECT term FROM ${table} WHERE term > ? ORDER BY term LIMIT 1 OFFSET ${COMPARED_AT_ONCE}`,
        after,
      ),
    )
    const until = last?.term ?? LAST
    const rows = read<{ term: string }>(
      fragment(
        `SELECT term FROM ${table} WHERE term > ? AND term <= ? AND length(term) BETWEEN ? AND ?
          AND instr(substr(term, ?), ?) BETWEEN 1 AND 5`,
        after,
        until,
        letters.length - 2,
        most,
        Math.max(1, half - 1),
        end,
      ),
    )
    for (const { term } of rows) {
      const { whole, beginning } = wordDistance(word, term, 2)
      const distance = isUnfinished ? beginning : whole
      if (distance === 2) found.push({ term, distance, isWhole: whole === distance })
    }
    if (last === undefined || !(await rest())) return found
    after = until
  }
}

interface NearWord {
  term: string
  distance: number
  /** the word has no more typos as a whole than in its beginning */
  isWhole: boolean
}

const namesOf = (words: readonly NearWord[], whole: boolean): string[] =>
  words.filter(({ isWhole }) => isWhole === whole).map(({ term }) => term)

async function nearWords(
  { table, read, rest }: Vocabulary,
  word: string,
  isUnfinished: boolean,
  allowed: number,
): Promise<NearWord[]> {
  const found = new Map<string, NearWord>()
  const least = word.length - allowed
  const most = isUnfinished ? Number.MAX_SAFE_INTEGER : word.length + allowed
  const add = (term: string): void => {
    if (term === word || found.has(term)) return
    const { whole, beginning } = wordDistance(word, term, allowed)
    const distance = isUnfinished ? beginning : whole
    // Words that begin with the typed word are found by its prefix query.
    if (distance === 0 || distance > allowed) return
    found.set(term, { term, distance, isWhole: whole === distance })
  }
  const beginnings = beginningsOf(word, allowed)
  for (let from = 0; from < beginnings.length; from += AT_ONCE) {
    if (from > 0 && !(await rest())) break
    const rows = read<{ term: string }>(
      fragment(
        `SELECT v.term FROM json_each(?) b CROSS JOIN ${table} v
          ON v.term >= b.value AND v.term < b.value || ? WHERE length(v.term) BETWEEN ? AND ?`,
        JSON.stringify(beginnings.slice(from, from + AT_ONCE)),
        LAST,
        least,
        most,
      ),
    )
    for (const { term } of rows) add(term)
  }
  return [...found.values()]
}

/**
 * The words that most documents have, the most frequent first. Words of no document are left out.
 *
 * Counting the documents of a frequent word takes long. So all words are counted up to a limit, and those that reach
 * it are counted again up to a higher one, until few enough reach it.
 */
async function mostFrequent(
  vocabulary: Vocabulary,
  words: readonly string[],
  most: number,
): Promise<[term: string, documents: number][]> {
  const counts = new Map<string, number>()
  let left = words
  for (let limit = FIRST_COUNT; left.length > 0 && limit <= LAST_COUNT; limit *= 8) {
    const frequent: string[] = []
    const some = Math.max(1, Math.floor(COUNTED_AT_ONCE / limit))
    for (let from = 0; from < left.length; from += some) {
      if (counts.size > 0 && !(await vocabulary.rest())) return mostOf(counts, most)
      for (const { term, documents } of counted(vocabulary, left.slice(from, from + some), limit)) {
        counts.set(term, documents)
        if (documents === limit) frequent.push(term)
      }
    }
    left = frequent
    if (left.length <= most) break
  }
  return mostOf(counts, most)
}

/** How many documents have each of some words in the searched columns, up to a limit. */
export function counted(
  { index, columns, read }: Vocabulary,
  words: readonly string[],
  limit: number,
): { term: string; documents: number }[] {
  return read(
    fragment(
      `SELECT value AS term, (SELECT count(*) FROM (SELECT 1 FROM ${index.table} WHERE ${index.table} MATCH
          ? || replace(value, '"', '""') || '"'${limited(limit).sql})) AS documents FROM json_each(?)`,
      columns === undefined ? '"' : `${columns} : "`,
      JSON.stringify(words),
    ),
  )
}

/** The words with the highest counts. */
function mostOf(counts: ReadonlyMap<string, number>, most: number): [term: string, documents: number][] {
  return [...counts]
    .filter(([, documents]) => documents > 0)
    .sort(([a, some], [b, others]) => others - some || (a < b ? -1 : 1))
    .slice(0, most)
}

/**
 * The prefixes of all words that this one may stand for. With one typo, either the first half is right or the rest
 * is. With two, the first half has no more than one.
 */
function beginningsOf(word: string, allowed: number): string[] {
  const letters = [...word]
  const half = letters.slice(0, Math.floor(letters.length / 2))
  const rest = letters.slice(half.length).join('')
  const changed = variantsOf(half, lettersAround(word))
  // The last letter of the half may be swapped with the next one.
  const swapped = [
    ...half.slice(0, -1),
    letters[half.length],
    half.at(-1),
    ...letters.slice(half.length + 1),
  ].join('')
  return [
    ...new Set([
      half.join(''),
      swapped.slice(0, allowed === 1 ? undefined : half.length),
      ...changed.map((beginning) => (allowed === 1 ? beginning + rest : beginning)),
    ]),
  ]
}

/** All variants of a prefix with one typo. */
function variantsOf(beginning: readonly string[], alphabet: readonly string[]): string[] {
  const variants: string[] = []
  for (let at = 0; at <= beginning.length; at++) {
    const [before, after] = [beginning.slice(0, at).join(''), beginning.slice(at).join('')]
    const [letter, ...others] = beginning.slice(at)
    for (const added of alphabet) variants.push(before + added + after)
    if (letter === undefined) continue
    variants.push(before + others.join(''))
    if (others.length > 0) variants.push(before + others[0] + letter + others.slice(1).join(''))
    for (const other of alphabet) variants.push(before + other + others.join(''))
  }
  return variants.filter((variant) => variant !== '')
}

function lettersAround(word: string): string[] {
  if (LATIN_WORD.test(word)) return LATIN
  const blocks = new Set([...word].map((letter) => Math.floor(letter.codePointAt(0)! / A_BLOCK)))
  return [...blocks]
    .flatMap((block) =>
      Array.from({ length: A_BLOCK }, (_, at) => String.fromCodePoint(block * A_BLOCK + at)).filter(
        (letter) => /[\p{L}\p{N}]/u.test(letter),
      ),
    )
    .slice(0, MOST_ALPHABET)
}

// =============================================================================
// Corrects words that the index does not hold.
//
// The dictionary is the index's own vocabulary, read through fts5vocab. In the index of stems, words are compared by
// stem. The first letter is assumed to be right: that limits the scan to a part of the vocabulary.

export interface TypoRules {
  /** 0 to 2 */
  maxTypos: number
  /** shortest words that may have one typo, or two */
  minLengthOneTypo: number
  minLengthTwoTypos: number
  /** whether words of letters and digits may have typos */
  withDigits: boolean
  /** whether numbers may have typos */
  numbers: boolean
}

// The most corrections. Among words at the same distance, the most frequent are chosen.
const MAX_CORRECTIONS = 4
/** Words that are looked up in the searched fields before the correction is given up. */
const MOST_TRIED = 256

export const typosAllowed = (word: string, rules: TypoRules): number =>
  (!rules.withDigits && /\d/.test(word) && !/^\d+$/.test(word)) || (!rules.numbers && /^\d+$/.test(word))
    ? 0
    : Math.min(
        rules.maxTypos,
        word.length >= rules.minLengthTwoTypos ? 2 : word.length >= rules.minLengthOneTypo ? 1 : 0,
      )

/** Name of the table of the index's words and how many documents hold each. It is created on first use. */
export function vocabularyOf(sql: SqlStorage, { table, vocabulary }: TextIndex): string {
  sql.exec(`CREATE VIRTUAL TABLE IF NOT EXISTS ${vocabulary} USING fts5vocab('${table}', 'row')`)
  return vocabulary
}

/**
 * Words to search for in place of one that the index lacks: the nearest ones, and how far they are. Stems are written so
 * that FTS5 stems them back to themselves.
 * @param stands whether a word stands in a searched field
 */
export function corrections(
  sql: SqlStorage,
  index: TextIndex,
  word: string,
  rules: TypoRules,
  stands: (word: string) => boolean,
): Map<string, number> {
  const allowed = typosAllowed(word, rules)
  // Counting letters says little about typos in other scripts.
  if (allowed === 0 || !/^[a-z][a-z0-9]*$/.test(word)) return new Map()
  const wanted = index.stems ? stem(word) : word
  const next = String.fromCharCode(wanted.charCodeAt(0) + 1)
  const found: { term: string; documents: number; distance: number }[] = []
  const rows = sql.exec<{ term: string; doc: number }>(
    `SELECT term, doc FROM ${vocabularyOf(sql, index)} WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ?`,
    wanted[0]!,
    next,
    wanted.length - allowed,
    wanted.length + allowed,
  )
  for (const { term, doc } of rows) {
    const distance = wordDistance(wanted, term, allowed).whole
    if (distance > 0 && distance <= allowed) found.push({ term, documents: doc, distance })
  }
  found.sort((a, b) => a.distance - b.distance || b.documents - a.documents || (a.term < b.term ? -1 : 1))
  const words = new Map<string, number>()
  let nearest = allowed
  for (const { term, distance } of found.slice(0, MOST_TRIED)) {
    if (words.size === MAX_CORRECTIONS || distance > nearest) break
    const spelling = index.stems ? unstem(term) : term
    if (spelling === undefined || !stands(spelling)) continue
    words.set(spelling, distance)
    nearest = distance
  }
  return words
}

/** Finds a word that has this stem. FTS5 stems the words of a query, and not every stem is its own stem. */
function unstem(term: string): string | undefined {
  const endings = ['', 'e', 's', 'ity', 'ed', 'ing', 'ation']
  const spellings = endings.map((ending) => term + ending)
  if (term.endsWith('i')) spellings.push(`${term.slice(0, -1)}y`, `${term.slice(0, -1)}ies`)
  return spellings.find((spelling) => stem(spelling) === term)
}

// =============================================================================
// British and American spellings: people ask for `color` where a text says `colour`.

/** Endings and letters of one spelling, and those of the other. */
const PAIRS: readonly [RegExp, string][] = [
  [/our(?=$|s$|ed$|ing$|ful|able|ably|ite|hood|ly$|less|er)/, 'or'],
  [/or(?=$|s$|ed$|ing$|ful|able|ably|ite|hood|ly$|less|er)/, 'our'],
  [/is(?=(?:e[drs]?|ing|ations?|ers?)$)/, 'iz'],
  [/iz(?=(?:e[drs]?|ing|ations?|ers?)$)/, 'is'],
  [/ys(?=(?:e[drs]?|ing|ers?)$)/, 'yz'],
  [/yz(?=(?:e[drs]?|ing|ers?)$)/, 'ys'],
  [/tre(?=s?$)/, 'ter'],
  [/ter(?=s?$)/, 'tre'],
  [/ogue(?=s?$)/, 'og'],
  [/og(?=s?$)/, 'ogue'],
  [/ence(?=s?$)/, 'ense'],
  [/ense(?=s?$)/, 'ence'],
]

/** Shorter words are other words: `tour` and `tor`. */
const FEWEST_LETTERS = 5

/** The other spellings that a folded word may have. Most are no words: look them up. */
export const otherSpellings = (word: string): string[] =>
  word.length < FEWEST_LETTERS
    ? []
    : PAIRS.flatMap(([from, to]) => (from.test(word) ? [word.replace(from, to)] : []))
