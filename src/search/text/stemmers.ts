/** Stemmers of fields with `stem: true`: Porter's for English, Snowball's for other languages. */
import { stemmer as danish } from '@orama/stemmers/danish'
import { stemmer as dutch } from '@orama/stemmers/dutch'
import { stemmer as french } from '@orama/stemmers/french'
import { stemmer as german } from '@orama/stemmers/german'
import { stemmer as italian } from '@orama/stemmers/italian'
import { stemmer as norwegian } from '@orama/stemmers/norwegian'
import { stemmer as portuguese } from '@orama/stemmers/portuguese'
import { stemmer as russian } from '@orama/stemmers/russian'
import { stemmer as spanish } from '@orama/stemmers/spanish'
import { stemmer as swedish } from '@orama/stemmers/swedish'
import { stem } from './words'

/** From a word in small letters, with its accents, to its stem. */
export type Stemmer = (word: string) => string

/** By locale. The others of the package stay out: Greek and Serbian alone weigh 17 KB of the bundle's gzip. */
const STEMMERS = new Map<string, Stemmer>([
  ['', stem],
  ['en', stem],
  ['de_en', stem],
  ['da', danish],
  ['de', german],
  ['es', spanish],
  ['fr', french],
  ['it', italian],
  ['nl', dutch],
  ['no', norwegian],
  ['pt', portuguese],
  ['ru', russian],
  ['sv', swedish],
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
