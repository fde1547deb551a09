/** Documents of which each has words of its own, so that a wrong passage, answer or count shows. */

const CONSONANTS = 'bdfgklmnprstvz'
const VOWELS = 'aeiou'
const SYLLABLES = [...CONSONANTS].flatMap((one) => [...VOWELS].map((other) => one + other))
const WORD_SYLLABLES = 5
const FILLER =
  'The tower stands on rock above the sea and is built of pale stone with a gallery of iron. Boats bring oil bread and letters when the weather allows it.'

/** Documents of one region. */
export const REGIONS = 100

/** Prime to the number of words, so no two numbers have the same one. */
const FACTOR = 10_000_019
const KEEPERS = 800_000_000

/** A word that no other number has; numbers that follow each other have little in common. @param {number} number */
function word(number) {
  let rest = (number * FACTOR) % SYLLABLES.length ** WORD_SYLLABLES
  let text = ''
  for (let at = 0; at < WORD_SYLLABLES; at++) {
    text += SYLLABLES[rest % SYLLABLES.length]
    rest = Math.floor(rest / SYLLABLES.length)
  }
  return text
}

/** @param {number} number below 800 million */
export const nameOf = (number) => word(number)
/** @param {number} number */
export const keeperOf = (number) => word(KEEPERS + number)

/** @param {number} number */
export const lighthouse = (number) => ({
  title: `Lighthouse ${nameOf(number)}`,
  text: `The lighthouse ${nameOf(number)} was lit in ${1800 + (number % 150)}. The keeper of the lighthouse ${nameOf(number)} is called ${keeperOf(number)}. ${FILLER}`,
  region: number % REGIONS,
})
