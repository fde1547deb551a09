/**
 * Passages of a long text: pieces that can be read by themselves, each under its headings.
 *
 * A text is cut at headings, then between paragraphs, lists, tables and blocks of code, and inside of these only where
 * one is longer than a passage may be. What announces something ("Do this:") stays with what follows it.
 */
import { splitSentences } from '../models/extractive/sentences'

export interface Passage {
  /** place among the passages of its text */
  position: number
  /** the headings that it stands under, outermost first, with their Markdown levels */
  headings: Heading[]
  /** as it stands in the text */
  text: string
}

export interface Heading {
  level: number
  text: string
}

/** Passages grow to about this many characters, some 200 words: a few paragraphs. */
const USUAL = 900
/** A block longer than this is cut. */
const LONGEST = 1_500

const FENCE = /^ {0,3}(`{3,}|~{3,})/
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*$/

/** A paragraph, list, table or block of code. */
interface Block {
  headings: Heading[]
  text: string
  code: boolean
}

/** Cuts a text, Markdown or plain, into passages. Joined they hold all of it but its headings and blank lines. */
export function passagesOf(text: string): Passage[] {
  const passages: Passage[] = []
  let open: { headings: Heading[]; parts: string[]; length: number } | undefined
  const close = () => {
    if (!open) return
    passages.push({ position: passages.length, headings: open.headings, text: open.parts.join('\n\n') })
    open = undefined
  }
  for (const block of blocksOf(text)) {
    for (const part of cut(block)) {
      const announced = open?.parts.at(-1)?.trimEnd().endsWith(':') === true
      const room = announced ? LONGEST : USUAL
      if (open && (open.headings !== block.headings || open.length + part.length > room)) close()
      open ??= { headings: block.headings, parts: [], length: 0 }
      open.parts.push(part)
      open.length += part.length
    }
  }
  close()
  return passages
}

/** Blocks of the same section share one list of headings. */
function blocksOf(text: string): Block[] {
  const blocks: Block[] = []
  let headings: Heading[] = []
  let lines: string[] = []
  let fence = ''
  const close = (code = false) => {
    const block = lines.join('\n')
    if (block.trim() !== '') blocks.push({ headings, text: block, code })
    lines = []
  }
  for (const line of text.split(/\r?\n/)) {
    const mark = FENCE.exec(line)?.[1]
    if (fence !== '') {
      lines.push(line)
      if (!mark?.startsWith(fence)) continue
      fence = ''
      close(true)
      continue
    }
    if (mark !== undefined) {
      close()
      fence = mark
      lines.push(line)
      continue
    }
    const [, marks, heading] = HEADING.exec(line) ?? []
    if (marks !== undefined && heading !== undefined) {
      close()
      const level = marks.length
      headings = [...headings.filter((above) => above.level < level), { level, text: heading }]
    } else if (line.trim() === '') close()
    else lines.push(line)
  }
  // A fence that was never closed runs to the end.
  close(fence !== '')
  return blocks
}

/** A block in pieces of at most LONGEST characters: of code and tables whole lines, of prose whole sentences. */
function cut({ text, code }: Block): string[] {
  if (text.length <= LONGEST) return [text]
  const isLined = code || /^\s*([-*+|>]|\d+[.)])/.test(text)
  const pieces = isLined ? text.split('\n') : splitSentences(text)
  const joint = isLined ? '\n' : ' '
  const parts: string[] = []
  let part = ''
  for (const piece of pieces.flatMap(cutByLength)) {
    if (part !== '' && part.length + joint.length + piece.length > USUAL) {
      parts.push(part)
      part = ''
    }
    part = part === '' ? piece : part + joint + piece
  }
  return part === '' ? parts : [...parts, part]
}

/** A line or sentence that is too long by itself: at a blank near its end, else anywhere but in a character. */
function cutByLength(text: string): string[] {
  const parts: string[] = []
  let rest = text
  while (rest.length > LONGEST) {
    const blank = rest.lastIndexOf(' ', USUAL)
    const at = blank > USUAL / 2 ? blank : USUAL - (isHighSurrogate(rest.charCodeAt(USUAL - 1)) ? 1 : 0)
    parts.push(rest.slice(0, at))
    rest = rest.slice(at).trimStart()
  }
  return rest === '' ? parts : [...parts, rest]
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff

/** Stands where passages are left out between two others. */
const GAP = '…'

/**
 * Some passages of a text as one text, with their headings.
 * @param chosen in the order of their positions
 */
export function joinPassages(chosen: Passage[]): string {
  const parts: string[] = []
  let above: Heading[] = []
  let last = -1
  for (const { position, headings, text } of chosen) {
    if (position > last + 1) parts.push(GAP)
    const shared = headings.findIndex((heading, at) => heading !== above[at])
    for (const { level, text: heading } of shared < 0 ? [] : headings.slice(shared)) {
      parts.push(`${'#'.repeat(level)} ${heading}`)
    }
    parts.push(text)
    above = headings
    last = position
  }
  return parts.join('\n\n')
}
