/** The documents of a prompt as every protocol sees them, and the labels by which answers cite them. Pure. */

import { regExp } from '../lib/once'
import { isOwnPage } from '../models/extractive/places'
import { titleOf } from '../models/extractive/sentences'
import type { Source } from '../models/language-model'
import type { Passage } from './events'

/** UTF-16 units of a passage's text: enough to read, and far below the 64 KB limit of a line. */
const LONGEST_TEXT = 4_000

/** The field with a document's address, unless another is named. */
export const ADDRESS = 'url'

/**
 * The documents of a prompt, best first. A document without an id (include_fields) cannot be named and is left
 * out.
 */
export const passagesOf = (sources: readonly Source[]): Passage[] =>
  sources
    .filter(({ document }) => typeof document.id === 'string')
    .map(({ collection, document, score = 0 }, index) => {
      const { id, ...fields } = document
      const title = titleOf(document)
      const url = linkable(document[ADDRESS], id)
      return {
        collection,
        id: String(id),
        rank: index + 1,
        score,
        text: textsOf(fields, ADDRESS),
        ...(title !== '' && { title }),
        ...(url !== undefined && { url }),
        fields,
      }
    })

/** A document's texts, one a line; long ones are cut. @param address a field to leave out */
export const textsOf = (fields: Record<string, unknown>, address: string): string =>
  Object.entries(fields)
    .filter(([name, value]) => typeof value === 'string' && name !== address)
    .map(([, value]) => value)
    .join('\n')
    .slice(0, LONGEST_TEXT)
    // Drop half a character at the end.
    .replace(/[\ud800-\udbff]$/, '')

/** Accepts only addresses that are safe to open. Documents are untrusted and may hold script URLs. */
export const linkable = (value: unknown, id: unknown): string | undefined =>
  typeof value === 'string' && /^(https?:\/\/|\/(?!\/))[^\s<>"\\]*$/i.test(value) && !isOwnPage(value, id)
    ? value
    : undefined

// Labels by which an answer cites documents in square brackets: `[plan.pdf#page=3]`.
//
// Clients look up a bracket's text in the list of sources and open it as an address. Tools that grade answers
// expect names that end like file names (contract chat-protocols 1.8). A label is a field of the document, or
// its id and `.txt`.

/** How documents are labelled. */
export interface Labelling {
  /** the field that holds a document's name; documents without it are named by their id */
  field?: string
}

const ENDING = '.txt'

/**
 * Characters that would end a citation, a line, or the label before a source's text. `%` is escaped so that
 * decoding works.
 */
const UNSAFE = regExp(String.raw`[[\]:%\p{Cc}]`, 'gu')
/** A label made from an id escapes these too: clients would take them for the end of a URL's path. */
const UNSAFE_IN_ID = regExp(String.raw`[[\]:%#?\p{Cc}]`, 'gu')

const encode = (text: string, unsafe: RegExp): string =>
  text.replace(
    unsafe,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
  )

/** Reverses `encode`. Sequences that `encode` never writes stay as they are. */
const decode = (text: string): string =>
  text.replace(/%([0-9A-F]{2})/g, (encoded, digits) => {
    const character = String.fromCharCode(Number.parseInt(digits, 16))
    return encode(character, UNSAFE_IN_ID()) === encoded ? character : encoded
  })

/** The label of a document; undefined if the document shows neither the field nor an id. */
export function labelOf(document: Record<string, unknown>, { field }: Labelling): string | undefined {
  const named = field === undefined ? undefined : document[field]
  if (typeof named === 'string' && named.trim() !== '') return encode(named.trim(), UNSAFE())
  return typeof document.id === 'string' ? encode(document.id, UNSAFE_IN_ID()) + ENDING : undefined
}

/** What a label can stand for, likeliest first: ids of documents, and values of the naming field. */
export function meaningOf(label: string): { ids: string[]; names: string[] } {
  const written = [...new Set([decode(label), label])]
  const ids = written.flatMap((text) => (text.endsWith(ENDING) ? [text.slice(0, -ENDING.length)] : []))
  return { ids: ids.filter((id) => id !== ''), names: written }
}
