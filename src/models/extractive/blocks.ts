/** Splits Markdown or plain text into blocks. */
import { regExp } from '../../once'

export interface Block {
  text: string
  headings: string[]
  /** a list item or a table row: one sentence, whatever its punctuation */
  item: boolean
  /** a table row as written; `text` adds the names of its columns */
  row?: string
  /** a fenced code block that follows directly, with its fences */
  code?: string
  /** the block has no words of its own: code follows its heading directly, and `text` repeats that heading */
  headed?: true
  /** the list or table that follows directly, or whose first item this is, as a Markdown list */
  list?: string
}

const LONGEST_CODE = 1500
const LONGEST_LIST = 1500

const FENCE = /^\s*(```|~~~)/
// None of these patterns may backtrack over a run of characters: a line can be as long as a document.
const HEADING = /^\s{0,3}(#{1,6})(?=\s)(.*)$/s
const CLOSING_MARKS = /(?<!#)#+$/
const ITEM = /^\s*(?:[-*+\u2022\u25cf\u25aa]|\d{1,3}[.)])\s+(.*)$/s
const ROW = /^\s*\|.*\|\s*$/
const TABLE_RULE = /^[\s:|-]+$/
/** VitePress's and GitHub's boxes: `::: warning`, `> [!NOTE]`. Their text is kept. */
const BOX = /^\s*(?::::.*|(?:>\s*)?\[!\w+\]\s*)$/
/** Only marks, such as the `…` for omitted passages. */
const NOTHING_SAID = regExp(String.raw`^[^\p{L}\p{N}]*$`, 'u')

/** Returns the paragraphs, list items and table rows of Markdown or plain text, each with its headings. */
export function blocksOf(text: string): Block[] {
  const blocks: Block[] = []
  const headings: { level: number; text: string }[] = []
  let lines: string[] = []
  let item = false
  let row: string | undefined
  let columns: string[] = []
  const close = () => {
    const joined = inline(lines.join(' ').replace(/\s+/g, ' ').trim())
    if (!NOTHING_SAID().test(joined)) {
      const above = headings.map((heading) => heading.text)
      blocks.push({ text: joined, headings: above, item, ...(row !== undefined && { row }) })
    }
    lines = []
    item = false
    row = undefined
  }
  const source = text.split(/\r?\n/)
  for (let index = 0; index < source.length; index++) {
    const line = source[index]!
    if (FENCE.test(line)) {
      close()
      let end = index + 1
      while (end < source.length && !FENCE.test(source[end]!)) end += 1
      const last = Math.min(end, source.length - 1)
      const code = source.slice(index, last + 1).join('\n')
      if (end < source.length && code.length <= LONGEST_CODE) introduce(blocks, headings, code)
      index = last
      continue
    }
    const heading = HEADING.exec(line)
    const listed = ITEM.exec(line)
    if (heading) {
      close()
      const level = heading[1]!.length
      while (headings.length > 0 && headings.at(-1)!.level >= level) headings.pop()
      headings.push({ level, text: inline(heading[2]!.trim().replace(CLOSING_MARKS, '')) })
    } else if (line.trim() === '' || BOX.test(line)) close()
    else if (listed) {
      close()
      lines.push(listed[1]!)
      item = true
    } else if (ROW.test(line)) {
      close()
      if (TABLE_RULE.test(line)) continue
      // The row above a rule names the columns and says nothing itself.
      if (TABLE_RULE.test(source[index + 1] ?? '') && ROW.test(source[index + 1] ?? '')) {
        columns = cellsOf(line)
        continue
      }
      lines.push(rowOf(cellsOf(line), columns))
      item = true
      row = inline(line.trim())
      close()
    } else lines.push(line.replace(/^\s*>\s?/, ''))
    if (!ROW.test(line)) columns = []
  }
  close()
  gatherLists(blocks)
  return blocks
}

/**
 * Attaches code to the block before it under the same headings. Right under a heading it belongs to the heading.
 */
function introduce(blocks: Block[], headings: { text: string }[], code: string): void {
  const above = headings.map(({ text }) => text)
  const before = blocks.at(-1)
  if (before && before.headings.join('\n') === above.join('\n')) {
    before.code ??= code
  } else if (above.length > 0) {
    blocks.push({ text: `${above.at(-1)}:`, headings: above, item: false, code, headed: true })
  }
}

const cellsOf = (line: string): string[] =>
  line
    .trim()
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim())

/** `name — column: value; column: value`. Several values each get the name of their column. */
function rowOf([name = '', ...values]: string[], [, ...columns]: string[]): string {
  const said = values.flatMap((value, index) => {
    const column = values.length > 1 ? (columns[index] ?? '') : ''
    return value === '' ? [] : [column === '' ? value : `${column}: ${value}`]
  })
  return [name, said.join('; ')].filter((part) => part !== '').join(' — ')
}

/** Attaches the whole list to the paragraph before it and to its first item. */
function gatherLists(blocks: Block[]): void {
  for (let first = 0; first < blocks.length; first++) {
    if (!blocks[first]!.item) continue
    let end = first + 1
    while (blocks[end]?.item && sameHeadings(blocks[end]!, blocks[first]!)) end += 1
    const list = listOf(blocks.slice(first, end))
    blocks[first]!.list = list
    const before = blocks[first - 1]
    if (before && sameHeadings(before, blocks[first]!) && before.code === undefined) before.list = list
    first = end - 1
  }
}

const sameHeadings = (a: Block, b: Block): boolean => a.headings.join('\n') === b.headings.join('\n')

/** As many whole items as fit. */
function listOf(items: Block[]): string {
  const lines: string[] = []
  let length = 0
  for (const { text } of items) {
    length += text.length
    if (length > LONGEST_LIST) return [...lines, '- …'].join('\n')
    lines.push(`- ${text}`)
  }
  return lines.join('\n')
}

/** Removes Markdown's inline marks, except those of code. */
const inline = (text: string): string =>
  withoutEmphasis(
    withoutComments(text)
      .replace(/!\[([^[\]]*)\]\([^()]*\)/g, '$1')
      .replace(/\[([^[\]]+)\]\((?:[^()]|\([^()]*\))*\)/g, '$1')
      .replace(/(\*\*|__)(.+?)\1/g, '$2'),
  ).trim()

/** Removes HTML comments. An unclosed one is text. */
function withoutComments(text: string): string {
  let left = ''
  let from = 0
  for (let begin = text.indexOf('<!--'); begin >= 0; begin = text.indexOf('<!--', from)) {
    const end = text.indexOf('-->', begin + 4)
    if (end < 0) break
    left += text.slice(from, begin)
    from = end + 3
  }
  return left + text.slice(from)
}

const OPENING = /(?<=^|\s)[*_](?=\S)/g
const CLOSING = /[*_](?=[\s.,;:!?]|$)/g

/**
 * Removes the marks of `*emphasis*`. Each opening mark takes the next one that can close it, in one pass over the
 * text.
 */
function withoutEmphasis(text: string): string {
  const closing = [...text.matchAll(CLOSING)]
  const next: Record<string, number> = { '*': 0, _: 0 }
  let left = ''
  let from = 0
  for (const { 0: mark, index: begin } of text.matchAll(OPENING)) {
    if (begin < from) continue
    let at = next[mark]!
    // There must be something between the two.
    while (at < closing.length && (closing[at]![0] !== mark || closing[at]!.index < begin + 2)) at += 1
    next[mark] = at
    const end = closing[at]?.index
    if (end === undefined) continue
    left += text.slice(from, begin) + text.slice(begin + 1, end)
    from = end + 1
  }
  return left + text.slice(from)
}
