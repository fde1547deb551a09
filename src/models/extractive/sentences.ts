/** Turns a document of any shape into sentences that could answer a question. */
import { regExp } from '../../lib/once'
import { type Block, blocksOf } from './blocks'

export interface Sentence {
  text: string
  /** what the sentence stands under: the document's title and other names, then the headings above it */
  context: string[]
  /** true for the first sentence under its heading, or of its document */
  opening: boolean
  /** place among the sentences of its document */
  position: number
  /** where it stands; absent for fields */
  place?: Place
  /** for short fields read out instead of a sentence: `text` without the title before it */
  facts?: string
  /** the names and values of these fields, in the document's order */
  fields?: [string, string][]
  /** true where the fields are most of what the document says */
  isRecord?: true
  /** the code that it has, or that follows directly */
  code?: string
  /** not a sentence but a heading that code follows directly */
  headed?: true
}

/** A block of a text, and an item or row in it. */
export interface Place {
  blocks: Block[]
  at: number
  unit: number
}

const TITLES = ['title', 'name', 'heading', 'subject', 'headline', 'question', 'label']
/** One short question and nothing else. */
const ASKS = /^\D[^?\uFF1F\u061F\n]{7,200}[?\uFF1F\u061F]$/
// Longer values are lists for machines: headings, tags, paths.
const LONGEST_FACT = 120
const MOST_FACTS = 12
/** characters of running text, past which a document is a page with some fields rather than a record */
const LONGEST_RECORD = 600
/** An import adds `section` and `tags` to pages. With these alone, a page is no record. */
const isOfRecord = ([name]: [string, string]): boolean => !/^(?:section|tags)$/.test(name)

/** The document's own title; '' without one. */
export function titleOf(document: Record<string, unknown>): string {
  const texts = Object.entries(document).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  )
  const named = texts.find(([key]) => isNaming(key)) ?? texts.find(([key]) => /(title|name)$/i.test(key))
  if (named) return named[1]
  // In a list of questions and answers, the title is the question. The column may have any name in any language, so it is recognised by
  // its question mark, and by another column that has the answer as prose.
  const [, asked] = texts.find(([, value]) => ASKS.test(value)) ?? []
  return asked !== undefined && texts.some(([, value]) => value !== asked && isProse(value)) ? asked : ''
}

const isNaming = (key: string): boolean => TITLES.includes(key.toLowerCase())

/** The headings of a passage that an import cut from a page: "Server > Options > bodyLimit". */
const HEADINGS = 'heading'
const BELOW = ' > '

/** Short texts that name a document or a part of it, and the headings above it, outermost first. */
export const namesOf = (document: Record<string, unknown>): string[] => [
  ...new Set(
    Object.entries(document).flatMap(([key, value]) =>
      isNaming(key) && typeof value === 'string'
        ? (key === HEADINGS ? value.split(BELOW) : [value]).filter((name) => name.length <= LONGEST_FACT)
        : [],
    ),
  ),
]

/** A folder, or the end of a name, that names a version: `v2/`, `-v1.3.md`, `release-1.0-rc.1/`, `2.x/`, `2024-03/`, `latest/`. */
const VERSION =
  /(?<=^|[/_-])(?:(?:v|ver|version|release)[-_]?\d+(?:\.(?:\d+|x))*(?:-(?:alpha|beta|rc|pre)[.\d]*)?|latest|stable|current)(?=[/_.?#-]|$)|(?<=^|\/)(?:\d+(?:\.(?:\d+|x))+|(?:19|20)\d\d(?:-\d\d){0,2})(?=\/)/i

/** A document's page, and the version that its path or address names. */
export function editionOf(document: Record<string, unknown>): { page: string; version?: string } {
  const paths = [document.parley_page ?? document.id, document.url].filter((path) => typeof path === 'string')
  const named = paths.find((path) => VERSION.test(path))
  const [version] = VERSION.exec(named ?? '') ?? []
  // Docusaurus keeps earlier versions beside `docs/`, in `versioned_docs/`.
  const page = (named ?? paths[0] ?? '').replace(VERSION, '').replace(/\bversioned_|\/(?=\/)|^\//g, '')
  return { page, ...(version !== undefined && { version }) }
}

/** Returns every sentence of a document: those of its texts, and one that reads out its short fields. */
export function sentencesOf(document: Record<string, unknown>): Sentence[] {
  const title = titleOf(document)
  // A passage cut from a page has the page's title and its own heading. Both say what it is about.
  const names = [title, ...namesOf(document).filter((name) => name !== title)]
  const sentences: Sentence[] = []
  const fields: [string, string][] = []
  let prose = 0
  let above: string | undefined
  for (const [path, value] of leaves(document)) {
    if (path === 'id' || names.includes(value) || path === HEADINGS) continue
    if (isProse(value)) {
      prose += value.length
      const blocks = blocksOf(value)
      blocks.forEach((block, at) => {
        const heading = block.headings.join('\n')
        const isFirst = heading !== above
        above = heading
        const context = [...names, ...block.headings].filter((part) => part !== '')
        const next = blocks[at + 1]
        const isShownBy = next?.kind === 'code' && next.headings.join('\n') === heading
        block.units.forEach(({ text, code }, unit) => {
          // Code is said by what stands before it, and right under a heading by that.
          const headed = block.kind === 'code' && isFirst && context.length > 0
          if (block.kind === 'code' && !headed) return
          const split = block.kind === 'text' ? splitSentences(text) : [headed ? `${context.at(-1)}:` : text]
          split.forEach((sentence, index) => {
            const isLast = unit === block.units.length - 1 && index === split.length - 1
            const own = code ?? (isLast && isShownBy ? next.units[0]!.code : undefined)
            sentences.push({
              text: sentence,
              context,
              opening: isFirst && unit === 0 && index === 0,
              position: sentences.length,
              place: { blocks, at, unit },
              ...(headed && { headed }),
              ...(own !== undefined && { code: own }),
            })
          })
        })
      })
    } else if (value !== '' && value.length <= LONGEST_FACT && !isForMachines(path, value)) {
      fields.push([path.replaceAll('_', ' '), value])
    }
  }
  if (fields.length > 0) {
    const shown = fields.slice(0, MOST_FACTS)
    const read = `${shown.map(([name, value]) => `${name}: ${value}`).join('; ')}.`
    sentences.push({
      text: title === '' ? read : `${title} — ${read}`,
      context: names.filter((part) => part !== ''),
      opening: false,
      position: sentences.length,
      facts: read,
      fields: shown,
      ...(prose <= LONGEST_RECORD && fields.some(isOfRecord) && { isRecord: true as const }),
    })
  }
  return sentences
}

/** Yields the strings of a document with their paths. A list of scalars is read out as one. */
function* leaves(value: unknown, path = ''): Generator<[string, string]> {
  if (typeof value === 'string') yield [path, value]
  else if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean')
    yield [path, String(value)]
  else if (Array.isArray(value)) {
    if (value.every((item) => typeof item !== 'object')) {
      if (value.some((item) => typeof item === 'string' && isProse(item))) {
        for (const item of value) yield [path, String(item)]
      } else yield [path, value.join(', ')]
    } else for (const item of value) yield* leaves(item, path)
  } else if (value !== null && typeof value === 'object') {
    for (const [key, item] of Object.entries(value)) yield* leaves(item, path === '' ? key : `${path} ${key}`)
  }
}

/** Whether a value is running text rather than a field's value. */
const isProse = (value: string): boolean =>
  value.length > 60
    ? /\s/.test(value) && !isList(value)
    : /\S+\s+\S+\s+\S+.*[.!?\u3002\uff01\uff1f]\s*$/s.test(value)

/** Whether a value is an address, a path, a checksum, or a field that `parley import` adds for itself. */
const isForMachines = (path: string, value: string): boolean =>
  /^https?:/.test(value) ||
  (value.includes('/') && !/\s/.test(value)) ||
  /^[0-9a-f]{16,}$/i.test(value) ||
  path.startsWith('parley_')

/** Whether a value is a list: short items between commas, without a sentence's end. */
const isList = (value: string): boolean =>
  !/[.!?:]\s*$/.test(value) && value.split(', ').length > 3 && value.length / value.split(', ').length < 30

const ABBREVIATION = regExp(
  String.raw`(?:^|[\s("'])(?:mr|mrs|ms|dr|prof|rev|gen|col|capt|lt|sgt|st|jr|sr|inc|ltd|co|corp|vs|etc|e\.g|i\.e|cf|al|no|vol|fig|eq|approx|dept|est|nr|bzw|inkl|zzgl|evtl|ggf|n\u00fam|p\u00e1g|z\.b|u\.a|d\.h|u\.s|u\.k|u\.n|a\.m|p\.m|\p{L})\.$`,
  'iu',
)
/** German writes ordinals with a full stop: `am 15. Februar`, `im 2. Stock`. */
const AFTER_ORDINAL =
  /^\s+(?:Januar|J\u00e4nner|Februar|M\u00e4rz|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|Stock|Etage|Obergeschoss|Untergeschoss|Jahrhundert|Lebensjahr|Quartal|Klasse)/
const LONGEST_AFTER_ORDINAL = 20
/** Most characters of an abbreviation and what precedes it. */
const LONGEST_ABBREVIATION = 16
const BOUNDARY = regExp(
  String.raw`(?<![.!?])[.!?]+["'\u201d\u2019)\]]*(?=\s+["'\u201c\u2018([]?[\p{Lu}\p{Lo}\p{N}])|[\u3002\uff01\uff1f]+["\u201d\u2019\u300d\u300f]*`,
  'gu',
)

/** Splits a paragraph into sentences. Initials, common abbreviations and decimal numbers do not end one. */
export function splitSentences(paragraph: string): string[] {
  const sentences: string[] = []
  let start = 0
  for (const match of paragraph.matchAll(BOUNDARY())) {
    const end = match.index + match[0].length
    const piece = paragraph.slice(start, end)
    if (match[0] === '.' && ABBREVIATION().test(piece.slice(-LONGEST_ABBREVIATION))) continue
    if (
      /\b\d{1,2}\.$/.test(piece.slice(-4)) &&
      AFTER_ORDINAL.test(paragraph.slice(end, end + LONGEST_AFTER_ORDINAL))
    )
      continue
    sentences.push(piece.trim())
    start = end
  }
  const rest = paragraph.slice(start).trim()
  if (rest !== '') sentences.push(rest)
  return sentences
}
