/** Sequence numbers of a block. Data of a collection is cached in memory, and dropped, by blocks. */
export const BLOCK = 4_096

/** The documents of a block: their sequence numbers less the block's first, in ascending order. */
export type Offsets = Uint16Array

/** A BigInt is a whole number that a double cannot hold. */
export type Scalar = string | number | bigint

/** A field's values in a block. */
export interface Block {
  /**
   * by offset: ids of strings with 0 for none, numbers with NaN for none, or latitudes. With `starts`, one value after the
   * other. Whole numbers that a double would round are all BigInts, and have `starts`
   */
  values: Uint16Array | Uint32Array | Float64Array | BigInt64Array
  /** where each document's values begin, and where the last one's end */
  starts: Uint16Array | Uint32Array | undefined
  /** of strings */
  words?: Words
  /** of places */
  longitudes?: Float64Array
}

/** Bytes in memory of each string besides its characters, and of a character in both of its forms. */
const [WORD_BYTES, CHARACTER_BYTES] = [150, 4]

/** How the strings of a block become what is compared. */
export interface Forms {
  form: (text: string) => string
  /** reads a long string */
  long: (place: number) => string
}

/** The different strings of a block, by id; 0 is no string. */
export class Words {
  /** A number is the place of a long string, which is read when it is asked for. */
  readonly texts: readonly (string | number)[]
  readonly #forms: Forms
  readonly #norms: string[] = []

  /** @param texts the first one is not used */
  constructor(texts: readonly (string | number)[], forms: Forms) {
    this.texts = texts
    this.#forms = forms
  }

  get size(): number {
    return this.texts.length
  }

  text(id: number): string {
    const text = this.texts[id]!
    return typeof text === 'string' ? text : this.#forms.long(text)
  }

  /** The normal form of a string (text/compared.ts). */
  norm(id: number): string {
    const known = this.#norms[id]
    if (known !== undefined) return known
    const norm = this.#forms.form(this.text(id))
    if (typeof this.texts[id] === 'string') this.#norms[id] = norm
    return norm
  }

  get bytes(): number {
    let bytes = 0
    for (const text of this.texts)
      bytes += WORD_BYTES + (typeof text === 'string' ? CHARACTER_BYTES * text.length : 0)
    return bytes
  }
}

/** A number of a block: a BigInt only if a double cannot hold it. */
export function numberAt(values: Block['values'], place: number): number | bigint {
  const value = values[place]!
  return typeof value === 'bigint' && Number.isSafeInteger(Number(value)) ? Number(value) : value
}

/** Where a document's only or first value is; -1 if it has none. */
export function placeAt({ values, starts, words }: Block, at: number): number {
  if (starts !== undefined) return starts[at]! < starts[at + 1]! ? starts[at]! : -1
  return (words === undefined ? Number.isNaN(values[at]) : values[at] === 0) ? -1 : at
}

/** The values of a document: strings, numbers, or latitudes and longitudes in turn. */
export function valuesAt(block: Block, at: number): Scalar[] {
  const { values, starts, words, longitudes } = block
  const first = placeAt(block, at)
  const found: Scalar[] = []
  if (first === -1) return found
  const end = starts === undefined ? first + 1 : starts[at + 1]!
  for (let place = first; place < end; place++) {
    found.push(words === undefined ? numberAt(values, place) : words.text(Number(values[place])))
    if (longitudes !== undefined) found.push(longitudes[place]!)
  }
  return found
}
