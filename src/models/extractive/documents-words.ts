/** The words of the documents of an answer, as a dictionary for misspelled questions. */
import { once } from '../../lib/once'
import type { Source } from '../language-model'
import type { Dictionary } from '../spelling'
import { wordsOf } from '../words'

/** Reads the documents only if a word of the question is looked up. */
export function dictionaryOf(sources: readonly Source[], language: Dictionary['language']): Dictionary {
  const words = once(() => wordsIn(sources))
  return {
    language,
    has: ({ stem }) => words().stems.has(stem),
    like: () => words().frequent,
  }
}

function wordsIn(sources: readonly Source[]): { frequent: string[]; stems: Set<string> } {
  const counts = new Map<string, number>()
  const stems = new Set<string>()
  for (const { document } of sources) {
    for (const value of Object.values(document)) {
      if (typeof value !== 'string') continue
      for (const { folded, stem } of wordsOf(value)) {
        counts.set(folded, (counts.get(folded) ?? 0) + 1)
        stems.add(stem)
      }
    }
  }
  return { frequent: [...counts.keys()].sort((a, b) => counts.get(b)! - counts.get(a)!), stems }
}
