/** British and American spellings: people ask for `color` where a text says `colour`. */

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
