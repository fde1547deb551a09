/** Where to read on: the sections nearest to a question, named by their headings. */
import type { Source } from '../language-model'
import type { Evidence, Section } from './evidence'

const MOST = 3
const LONGEST_NAME = 120
const LONGEST_EXCERPT = 160

/**
 * The best sections as one line of Markdown each: a name, a link if the document has an address, and its beginning.
 */
export function placesIn({ sections }: Evidence, sources: Source[]): string[] {
  const named = sections
    .filter(({ context, candidates }) => context.length > 0 || candidates.length > 0)
    .sort((a, b) => b.score - a.score)
  const seen = new Set<string>()
  const places: string[] = []
  for (const section of named) {
    const document = sources[section.rank]?.document ?? {}
    const name = nameOf(section, document)
    if (name === '' || seen.has(name)) continue
    seen.add(name)
    places.push(`${linked(name, document)}${excerptOf(section)}`)
    if (places.length === MOST) break
  }
  return places
}

/** The name of a section, as a link if its document has an address; '' without a name. */
export function placeOf(section: Section, sources: Source[]): string {
  const document = sources[section.rank]?.document ?? {}
  const name = nameOf(section, document)
  return name === '' ? '' : linked(name, document)
}

function nameOf({ context, edition: { version } }: Section, { id }: Record<string, unknown>): string {
  const names = [...new Set(context), ...(version === undefined ? [] : [version])]
  const name = context.length > 0 ? names.join(' › ') : typeof id === 'string' ? id : ''
  return clip(
    name
      .replace(/<[^<>]*>/g, '')
      .replace(/[[\]<>\n]/g, ' ')
      .replace(/\s+/g, ' ')
      .trim(),
    LONGEST_NAME,
  )
}

/**
 * Whether an address is that of Parley's page for the document, which asks for a key. Earlier imports gave it to documents that
 * have no other, with the name of the server that took the import.
 */
export const isOwnPage = (address: string, id: unknown): boolean =>
  address.includes('/document#') && address.endsWith(`/${encodeURIComponent(String(id).toWellFormed())}`)

function linked(name: string, document: Record<string, unknown>): string {
  const url = Object.values(document).find(
    (value) =>
      typeof value === 'string' &&
      /^(?:https?:\/\/|\/)[^\s()<>]{1,500}$/.test(value) &&
      !isOwnPage(value, document.id),
  )
  return url === undefined ? name : `[${name}](${url})`
}

function excerptOf({ candidates }: Section): string {
  const best = candidates.reduce((a, b) => (b.score > a.score ? b : a))
  return best.sentence.text === '' ? '' : `: ${clip(best.sentence.text, LONGEST_EXCERPT)}`
}

/** Cuts a text that is too long at a blank. */
function clip(text: string, most: number): string {
  if (text.length <= most) return text
  const at = text.lastIndexOf(' ', most)
  return `${text.slice(0, at > most / 2 ? at : most)} …`
}
