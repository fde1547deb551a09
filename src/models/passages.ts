/**
 * Cuts a long text into passages: pieces that can be read alone, each under its headings.
 *
 * The text is cut at headings first, then between paragraphs, lists, tables and code blocks. A block is cut
 * inside only if it is longer than a passage may be. An introducing line ("Do this:") stays with what follows
 * it.
 */
import { splitSentences } from './extractive/sentences'

export interface Passage {
  /** its place among the passages of its text */
  position: number
  /** the headings above it with their Markdown levels, outermost first */
  headings: Heading[]
  /** exactly as in the text */
  text: string
}

export interface Heading {
  level: number
  text: string
}

/** Characters. If a prompt has little room, a text longer than this is cut into passages. */
export const LONG_TEXT = 1_200
/** Passages grow to about this many characters: some 200 words, a few paragraphs. */
const USUAL = 900
/** A block longer than this is cut. */
const LONGEST = 1_500

const FENCE = /^ {0,3}(`{3,}|~{3,})/
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*$/

/** A paragraph, list, table or code block. */
interface Block {
  headings: Heading[]
  text: string
  code: boolean
}

/**
 * Cuts Markdown or plain text into passages. Together they hold all of the text but its headings and blank
 * lines.
 */
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

/** Blocks of one section share one list of headings. */
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
  // An unclosed fence runs to the end.
  close(fence !== '')
  return blocks
}

/** Cuts a block into pieces of at most LONGEST characters: code and tables by line, prose by sentence. */
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

/** Cuts an overlong line or sentence at a blank near the limit, else anywhere but inside a character. */
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

/** Marks passages left out between two others. */
const GAP = '…'

/**
 * Joins some passages of a text into one text, with their headings.
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
