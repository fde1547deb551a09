/** Stemmers of fields with `stem: true`: Porter's for English, Snowball's for other languages. */
import { SNOWBALL, type Stemmer } from '../../lib/snowball'
import { stem } from './words'

const STEMMERS = new Map<string, Stemmer>([
  ['', stem],
  ['en', stem],
  ['de_en', stem],
  ...Object.entries(SNOWBALL),
])

/** The locales that have a stemmer. */
export const stemmedLocales = (): string[] => [...STEMMERS.keys()].filter((locale) => /^..$/.test(locale))

/**
 * Words and their roots, by the name under which a collection stores them. They stay in memory as long as the isolate
 * lives.
 */
const DICTIONARIES = new Map<string, { words: ReadonlyMap<string, string>; stem: Stemmer }>()

/** Registers a dictionary as a stemmer, under a name that is not a locale. Roots of several words are left out. */
export function holdDictionary(name: string, words: ReadonlyMap<string, string>): void {
  const roots = new Map([...words].map(([word, root]) => [word.normalize('NFC').toLowerCase(), root.trim()]))
  const stem: Stemmer = (word) => {
    const root = roots.get(word)
    return root === undefined || root === '' || /\s/.test(root) ? word : root
  }
  DICTIONARIES.set(name, { words, stem })
}

/** The words of a dictionary that is in memory. */
export const dictionaryOf = (name: string): ReadonlyMap<string, string> | undefined =>
  DICTIONARIES.get(name)?.words

/** Undefined for a language without a stemmer. @param name a locale, or the name of a dictionary in memory */
export const stemmerOf = (name: string): Stemmer | undefined =>
  STEMMERS.get(name) ?? DICTIONARIES.get(name)?.stem
