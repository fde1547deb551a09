/** Snowball's stemmers: search finds words by their stems, and so does the built-in answerer. */
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

/** From a word in small letters, with its accents, to its stem. */
export type Stemmer = (word: string) => string

/** By locale. The others of the package stay out: Greek and Serbian alone weigh 17 KB of the bundle's gzip. */
export const SNOWBALL = {
  da: danish,
  de: german,
  es: spanish,
  fr: french,
  it: italian,
  nl: dutch,
  no: norwegian,
  pt: portuguese,
  ru: russian,
  sv: swedish,
} satisfies Record<string, Stemmer>
