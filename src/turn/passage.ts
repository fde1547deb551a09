/** Documents of a prompt as all protocols see them: pure. */
import { titleOf } from '../models/extractive/sentences'
import type { Source } from '../models/language-model'
import type { Passage } from './events'

/** UTF-16 units of a passage's text. Enough to read, and far from the 64 KB that a line may have. */
const LONGEST_TEXT = 4_000

/** The field with a document's address, where nobody names another. */
export const ADDRESS = 'url'

/** The documents of a prompt, best first. One that shows no id (include_fields) cannot be named, and is left out. */
export const passagesOf = (sources: readonly Source[]): Passage[] =>
  sources
    .filter(({ document }) => typeof document.id === 'string')
    .map(({ collection, document, score = 0 }, index) => {
      const { id, ...fields } = document
      const title = titleOf(document)
      const url = linkable(document[ADDRESS])
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

/** A document's texts, one a line, cut where they are long. @param address the field that is not one of them */
export const textsOf = (fields: Record<string, unknown>, address: string): string =>
  Object.entries(fields)
    .filter(([name, value]) => typeof value === 'string' && name !== address)
    .map(([, value]) => value)
    .join('\n')
    .slice(0, LONGEST_TEXT)
    // Without half a character at its end.
    .replace(/[\ud800-\udbff]$/, '')

/** An address that cannot do anything but open: documents are not trusted to hold scripts. */
export const linkable = (value: unknown): string | undefined =>
  typeof value === 'string' && /^(https?:\/\/|\/(?!\/))[^\s<>"\\]*$/i.test(value) ? value : undefined
