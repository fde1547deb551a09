/** A few words of a document, to read and not to copy: pure. */
import { plain } from '../../../widget/src/plain'

type Doc = Record<string, unknown>

const LONGEST = 220

/** The beginning of the longest text of a document. */
export function excerpt(document: Doc): string {
  const texts = Object.entries(document).flatMap(([name, value]) =>
    typeof value === 'string' && !/^(id|url|parley_\w+)$/.test(name) ? [value] : [],
  )
  const longest = texts.reduce((best, text) => (text.length > best.length ? text : best), '')
  // Cut before marks are taken away: a document can be long.
  const shown = plain(longest.slice(0, LONGEST * 3))
  const title = typeof document.title === 'string' ? document.title : ''
  const body = title !== '' && shown.startsWith(title) ? shown.slice(title.length).trimStart() : shown
  return (body || shown).slice(0, LONGEST)
}
