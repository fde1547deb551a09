/** Stemmers of fields with `stem: true`: Porter's for English, Snowball's for other languages. */
import { stemmer as dutch } from '@orama/stemmers/dutch'
import { stemmer as french } from '@orama/stemmers/french'
import { stemmer as german } from '@orama/stemmers/german'
import { stemmer as italian } from '@orama/stemmers/italian'
import { stemmer as portuguese } from '@orama/stemmers/portuguese'
import { stemmer as spanish } from '@orama/stemmers/spanish'
import { stem } from './words'

/** From a word in small letters, with its accents, to its stem. */
export type Stemmer = (word: string) => string

/** By locale. */
const STEMMERS = new Map<string, Stemmer>([
  ['', stem],
  ['en', stem],
  ['de_en', stem],
  ['de', german],
  ['es', spanish],
  ['fr', french],
  ['it', italian],
  ['nl', dutch],
  ['pt', portuguese],
])

export const STEMMED_LOCALES: readonly string[] = [...STEMMERS.keys()].filter((locale) => /^..$/.test(locale))

/** Undefined for a language without a stemmer. */
export const stemmerOf = (locale: string): Stemmer | undefined => STEMMERS.get(locale)
