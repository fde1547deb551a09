/** The documents that an answer stands on, and the places in it that cite them: pure. */
import { plain } from './plain'
import type { Citation, Front } from './wire'

export interface Source {
  /** counted from 1, best first: the digit in brackets */
  number: number
  collection: string
  documentId: string
  title: string
  /** by what the model cites it in brackets */
  label: string
  url?: string
  /** its fields of text, the shortest first */
  texts: string[]
}

type Doc = Record<string, unknown>

/** A citation in the text while it is Markdown: the source's number between two characters for private use. */
const OPEN = '\ue000'
const CLOSE = '\ue001'
export const MARK = /\ue000(\d+)(?::(\d+))?\ue001/g
const PRIVATE = /[\ue000\ue001]/g

/** @param data of the event `retrieval` */
export function sourcesOf(
  // biome-ignore lint/suspicious/noExplicitAny: search results, as openapi.json describes them
  data: { replies: any[]; sources: { collection: string; document_id: string }[] },
  front: Partial<Front>,
): Source[] {
  const found = new Map<string, Doc>()
  for (const { result } of data.replies) {
    if (!result) continue
    const hits =
      result.hits ?? (result.grouped_hits ?? []).flatMap((group: { hits: unknown[] }) => group.hits)
    for (const { document } of hits) {
      found.set(`${result.request_params?.collection_name}/${document.id}`, document)
    }
  }
  return data.sources.map(({ collection, document_id: id }, index) =>
    sourceOf(index + 1, collection, id, found.get(`${collection}/${id}`) ?? {}, front),
  )
}

/** Sources of a turn of which only the citations are known. */
export function sourcesCited(citations: readonly Citation[], front: Partial<Front>): Source[] {
  const sources: Source[] = []
  for (const { collection, document_id: id, quote } of citations) {
    if (sources.some((source) => source.collection === collection && source.documentId === id)) continue
    sources.push(sourceOf(sources.length + 1, collection, id, quote ? { text: quote } : {}, front))
  }
  return sources
}

function sourceOf(number: number, collection: string, id: string, doc: Doc, front: Partial<Front>): Source {
  const { title_field: title, url_field: address = 'url', citation_field: name } = front
  const titles = [title, 'title', 'name', 'heading', 'question'].map((field) => text(field && doc[field]))
  const url = linkable(doc[address], id)
  const named = text(name && doc[name])
  const called = titles.find(Boolean) || id
  return {
    number,
    collection,
    documentId: id,
    title: called,
    label: named ? encode(named, /[[\]:%\p{Cc}]/gu) : `${encode(id, /[[\]:%#?\p{Cc}]/gu)}.txt`,
    ...(url !== undefined && { url }),
    texts: Object.entries(doc)
      .flatMap(([field, value]) =>
        typeof value !== 'string' || field === 'id' || field === address || value === called ? [] : [value],
      )
      .sort((a, b) => a.length - b.length),
  }
}

const text = (value: unknown): string => (typeof value === 'string' ? value.trim() : '')

/** An address that visitors can open. Earlier imports gave documents that of Parley's page, which asks for a key. */
const linkable = (value: unknown, id: string): string | undefined =>
  typeof value === 'string' &&
  /^https?:\/\/[^\s<>"\\]+$/i.test(value) &&
  !(value.includes('/document#') && value.endsWith(`/${encodeURIComponent(id)}`))
    ? value
    : undefined

/** As src/turn/passage.ts encodes a name. */
const encode = (name: string, unsafe: RegExp): string =>
  name.replace(
    unsafe,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
  )

/** A sentence that has ended, before labels that follow it. */
const ENDED = /[.!?…][*_"'”’)]{0,4}(?:[ \t]*\[[^[\]]+\])*$/

/**
 * An answer with the labels of its sources made marks.
 * @param write what stands for a source; absent: a mark
 */
export function withMarks(
  answer: string,
  sources: readonly Source[],
  write = ({ number }: Source): string => `${OPEN}${number}${CLOSE}`,
): string {
  const byLabel = new Map(sources.map((source) => [source.label, source]))
  return answer.replace(
    /[ \t]*\[([^[\]]+)\](?!\()(\.(?!\S))?/g,
    (whole, inside: string, dot = '', at: number) => {
      const named = [inside, ...(byLabel.has(inside.trim()) ? [] : inside.split(/[,;]/))]
      const cited = (named.length > 1 ? named.slice(1) : named).map((name) => byLabel.get(name.trim()))
      if (!cited.every((source) => source !== undefined)) return whole
      // A model that ends its sentence before the label and after it has ended it once.
      const isEnded = ENDED.test(answer.slice(Math.max(0, at - 200), at))
      return cited.map(write).join('') + (isEnded ? '' : dot)
    },
  )
}

/** What of an answer can be shown while it is written: a bracket that may become a mark waits for its end. */
export function shownPart(answer: string): string {
  const at = answer.lastIndexOf('[')
  if (at < 0 || answer.length - at > 300) return answer
  const close = answer.indexOf(']', at)
  return close < 0 || close === answer.length - 1 ? answer.slice(0, at).trimEnd() : answer
}

/** The answer in clear, for the clipboard: without labels. */
export const withoutMarks = (answer: string, sources: readonly Source[]): string =>
  withMarks(answer, sources, () => '')

/**
 * The finished answer with all of its citations as marks: those that the model wrote, and those that were traced to
 * a sentence without one.
 */
export function markAnswer(
  answer: string,
  citations: readonly Citation[],
  sources: readonly Source[],
): string {
  const clean = answer.replace(PRIVATE, ' ')
  const inserts: { at: number; mark: string }[] = []
  for (const [index, { start, end, collection, document_id: id }] of citations.entries()) {
    const source = sources.find((each) => each.collection === collection && each.documentId === id)
    if (!source || clean.slice(start, end).includes(source.label)) continue
    inserts.push({ at: insertionPoint(clean, start, end), mark: `${OPEN}${source.number}:${index}${CLOSE}` })
  }
  let marked = clean
  for (const { at, mark } of inserts.sort((a, b) => b.at - a.at)) {
    marked = marked.slice(0, at) + mark + marked.slice(at)
  }
  return withMarks(marked, sources)
}

/** Where a mark after a sentence stands without breaking the Markdown around it. */
function insertionPoint(answer: string, start: number, end: number): number {
  let at = end
  while (at > start && /[\s|*_~]/.test(answer[at - 1] ?? '')) at -= 1
  const lineStart = answer.lastIndexOf('\n', at - 1) + 1
  const before = answer.slice(lineStart, at)
  const lineEnd = answer.indexOf('\n', at) < 0 ? answer.length : answer.indexOf('\n', at)
  const after = answer.slice(at, lineEnd)
  // Within an address or a piece of code, the mark goes after it.
  const closer = /\]\([^)]*$/.test(before) ? ')' : (before.split('`').length - 1) % 2 === 1 ? '`' : undefined
  const closes = closer === undefined ? -1 : after.indexOf(closer)
  return closes < 0 ? at : at + closes + 1
}

/** A passage of a source, in three parts: the one in the middle is what is cited. */
export interface Passage {
  /** the headings above it, outermost first; absent: none */
  path?: string[]
  before: string
  marked: string
  after: string
}

/** characters of the same paragraph, on each side */
const CONTEXT = 160
/** characters of a paragraph that is not read alone */
const FEW = 40
/** characters of a text that begins a card where no sentence of it is meant */
const BEGINNING = 300

/**
 * What of a source a citation stands on, as plain text.
 * @param quote the sentence that the server named, if it did
 * @param sentence what the answer says there
 */
export function passageOf(source: Source, quote: string | undefined, sentence: string): Passage {
  // What is around a sentence is of its paragraph: other fields may be names and dates.
  const paragraphs = source.texts.flatMap(paragraphsOf)
  const named = plain(quote ?? '')
  const quoted = named === '' ? undefined : paragraphs.find(({ text }) => text.includes(named))
  const marked =
    quoted === undefined
      ? likest(
          paragraphs.map(({ text }) => text),
          named || plain(sentence),
        )
      : named
  const found = quoted ?? paragraphs.find(({ text }) => text.includes(marked))
  if (marked === '' || found === undefined) {
    const [{ text, path } = { text: '', path: [] }] = named === '' ? paragraphs : []
    return {
      ...(path.length > 0 && { path }),
      before: '',
      marked: named || cutAt(text, BEGINNING),
      after: '',
    }
  }
  const { text: whole, path } = found
  const at = whole.indexOf(marked)
  const end = at + marked.length
  const after = cutAt(whole.slice(end), CONTEXT)
  const from = at > CONTEXT ? whole.indexOf(' ', at - CONTEXT) + 1 || at - CONTEXT : 0
  const before = (from > 0 && from <= at ? '… ' : '') + whole.slice(Math.min(from, at), at)
  return { ...(path.length > 0 && { path }), before, marked, after }
}

interface Paragraph {
  text: string
  /** the headings above it, outermost first */
  path: string[]
}

const FENCE = /^\s*(?:```|~~~)/
const HEADING = /^(#{1,6})\s+(.*)/

/** The paragraphs of a text, under their headings. One of a few words says nothing without the next. */
function paragraphsOf(text: string): Paragraph[] {
  const paragraphs: Paragraph[] = []
  let headings: { level: number; text: string }[] = []
  let lines: string[] = []
  let isCode = false
  const end = () => {
    const text = plain(lines.join('\n'))
    lines = []
    if (text === '') return
    const path = headings.map((heading) => heading.text)
    const last = paragraphs.at(-1)
    if (last && last.text.length < FEW && last.path.join('\n') === path.join('\n')) last.text += ` ${text}`
    else paragraphs.push({ text, path })
  }
  for (const line of text.split('\n')) {
    if (FENCE.test(line)) isCode = !isCode
    const [, marks, heading] = (!isCode && HEADING.exec(line)) || []
    if (marks !== undefined || line.trim() === '') end()
    if (marks === undefined) lines.push(line)
    else {
      const above = headings.filter(({ level }) => level < marks.length)
      headings = [...above, { level: marks.length, text: plain(heading ?? '') }]
    }
  }
  end()
  return paragraphs
}

/** The beginning of a text, up to the end of a word. */
function cutAt(text: string, length: number): string {
  if (text.length <= length) return text
  const space = text.lastIndexOf(' ', length)
  return `${text.slice(0, space > 0 ? space : length)} …`
}

/** A full stop that ends a sentence: no part of a number, an address or a version. */
const STOPS = /(?<=[.!?]["”’)]?)\s+(?=[\p{Lu}\p{Lo}\p{N}"“(])|(?<=[。！？])/u
/** The last sentence of a text: what a digit behind it cites for. */
export const lastSentence = (text: string): string => text.trim().split(STOPS).at(-1) ?? ''

/** Words that two sentences must share, so that one is meant by the other. */
const FEWEST_SHARED = 2

/** The sentence that shares most words with another one; '' where none shares enough. */
function likest(paragraphs: readonly string[], sentence: string): string {
  const words = (of: string) => new Set(of.toLowerCase().match(/[\p{L}\p{N}]{4,}/gu))
  const wanted = words(sentence)
  let best = ''
  let most = Math.min(FEWEST_SHARED, wanted.size) - 1
  for (const candidate of paragraphs.flatMap((text) => text.split(STOPS))) {
    const shared = [...words(candidate)].filter((word) => wanted.has(word)).length
    if (shared > Math.max(0, most)) {
      most = shared
      best = candidate.trim()
    }
  }
  return best
}
