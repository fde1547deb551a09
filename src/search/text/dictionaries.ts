/** Stemming dictionaries, as fields and searches read them from D1. */
import { KeptSets } from '../kept-sets'

export const STEMMING_DICTIONARY = 'stemming_dictionary'

/** From a word to its root. */
export const stemmingDictionaries = new KeptSets<ReadonlyMap<string, string>>(
  'a stemming dictionary',
  STEMMING_DICTIONARY,
  (entries) => entries,
)
