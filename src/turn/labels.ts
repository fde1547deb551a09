/**
 * Names by which an answer cites documents in square brackets: `[plan.pdf#page=3]`.
 *
 * Clients look for a bracket's text in the list of sources and open it as an address, and judges of answers want
 * names that end like a file's (contract chat-protocols 1.8). A document is named by a field of its own, or by its
 * id and `.txt`.
 */
import { regExp } from '../once'

/** How documents are to be named. */
export interface Labelling {
  /** the field with a document's name; where it is missing, the id names it */
  field?: string
}

const ENDING = '.txt'

/** Characters that end a citation, a line, or the name before a source's text; `%` so that they can be put back. */
const UNSAFE = regExp(String.raw`[[\]:%\p{Cc}]`, 'gu')
/** In a name made of an id, these would be taken for the end of an address's path. */
const UNSAFE_IN_ID = regExp(String.raw`[[\]:%#?\p{Cc}]`, 'gu')

const encode = (text: string, unsafe: RegExp): string =>
  text.replace(
    unsafe,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
  )

/** What `encode` was given. Text that it never made is returned as it came. */
const decode = (text: string): string =>
  text.replace(/%([0-9A-F]{2})/g, (encoded, digits) => {
    const character = String.fromCharCode(Number.parseInt(digits, 16))
    return encode(character, UNSAFE_IN_ID()) === encoded ? character : encoded
  })

/** The name of a document; undefined for one that shows neither the field nor an id. */
export function labelOf(document: Record<string, unknown>, { field }: Labelling): string | undefined {
  const named = field === undefined ? undefined : document[field]
  if (typeof named === 'string' && named.trim() !== '') return encode(named.trim(), UNSAFE())
  return typeof document.id === 'string' ? encode(document.id, UNSAFE_IN_ID()) + ENDING : undefined
}

/** What a label can stand for, the likeliest first: ids of documents, and values of the field that names them. */
export function meaningOf(label: string): { ids: string[]; names: string[] } {
  const written = [...new Set([decode(label), label])]
  const ids = written.flatMap((text) => (text.endsWith(ENDING) ? [text.slice(0, -ENDING.length)] : []))
  return { ids: ids.filter((id) => id !== ''), names: written }
}
