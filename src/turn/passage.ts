/** The documents of a prompt as every protocol sees them. Pure. */
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
