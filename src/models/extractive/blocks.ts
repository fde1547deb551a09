/** Splits Markdown or plain text into blocks: paragraphs, lists, tables and code, each whole. */
import { regExp } from '../../lib/once'

export interface Block {
  kind: 'text' | 'list' | 'table' | 'code'
  headings: string[]
  /** what is matched and shown for itself: the paragraph, each item with all below it, each row, the code */
  units: Unit[]
  /** the head of a table, with the rule below it */
  head?: string
}

export interface Unit {
  /** without marks; a row with the names of its columns; '' for code */
  text: string
  /** as Markdown */
  shown: string
  /** the code in an item */
  code?: string
}

const FENCE = /^\s*(```+|~~~+)/
// None of these patterns may backtrack over a run of characters: a line can be as long as a document.
const HEADING = /^\s{0,3}(#{1,6})(?=\s)(.*)$/s
const CLOSING_MARKS = /(?<!#)#+$/
const ITEM = /^(\s*)([-*+\u2022\u25cf\u25aa]|\d{1,3}[.)])\s+(.*)$/s
const ROW = /^\s*\|.*\|\s*$/
const TABLE_RULE = /^[\s:|-]+$/
/** VitePress's and GitHub's boxes: `::: warning`, `> [!NOTE]`. Their text is kept. */
const BOX = /^\s*(?::::.*|(?:>\s*)?\[!\w+\]\s*)$/
/** Only marks, such as the `…` for omitted passages. */
const NOTHING_SAID = regExp(String.raw`^[^\p{L}\p{N}]*$`, 'u')

/** Returns the blocks of Markdown or plain text in order, each with its headings. */
export function blocksOf(text: string): Block[] {
  const blocks: Block[] = []
  const headings: { level: number; text: string }[] = []
  const source = text.split(/\r?\n/)
  let paragraph: string[] = []
  let list: Block | undefined
  let columns: string[] = []
  const add = (block: Omit<Block, 'headings'>): Block => {
    const added = { ...block, headings: headings.map((heading) => heading.text) }
    blocks.push(added)
    return added
  }
  const close = () => {
    const joined = inline(paragraph.join(' ').replace(/\s+/g, ' ').trim())
    paragraph = []
    if (!NOTHING_SAID().test(joined)) add({ kind: 'text', units: [{ text: joined, shown: joined }] })
  }
  for (let at = 0; at < source.length; at++) {
    const line = source[at]!
    const fence = FENCE.exec(line)?.[1]
    const heading = HEADING.exec(line)
    const item = ITEM.exec(line)
    const isRow = ROW.test(line)
    if (!isRow) columns = []
    if (fence !== undefined) {
      close()
      let end = at + 1
      while (end < source.length && !source[end]!.trim().startsWith(fence)) end += 1
      const code = source.slice(at, end + 1)
      at = end
      const step = list?.units.at(-1)
      if (step && isOfStep(step, line, source, end + 1)) {
        const by = /^\s/.test(line) ? '' : '   '
        step.shown += code.map((each) => `\n${by}${each}`).join('')
        step.code = (step.code ?? '') + code.join('\n')
      } else if (end < source.length) {
        list = undefined
        add({ kind: 'code', units: [{ text: '', shown: code.join('\n'), code: code.join('\n') }] })
      }
    } else if (heading) {
      close()
      list = undefined
      const level = heading[1]!.length
      while (headings.length > 0 && headings.at(-1)!.level >= level) headings.pop()
      headings.push({ level, text: inline(heading[2]!.trim().replace(CLOSING_MARKS, '')) })
    } else if (line.trim() === '' || BOX.test(line)) close()
    else if (item) {
      close()
      const [, indent = '', mark, said = ''] = item
      const own = inline(said)
      if (!list) list = add({ kind: 'list', units: [] })
      if (!NOTHING_SAID().test(own)) list.units.push({ text: own, shown: `${indent}${mark} ${own}` })
      if (list.units.length === 0) {
        blocks.pop()
        list = undefined
      }
    } else if (list && (/^\s{2,}/.test(line) || source[at - 1]?.trim() !== '')) {
      // More of the item: lines that go on, and paragraphs that stand below it.
      const last = list.units.at(-1)!
      const more = inline(line.trim())
      // A sentence does not go on over code.
      if (!last.code) last.text += ` ${more}`
      else last.code += `\n${more}`
      const joint = source[at - 1]?.trim() === '' ? '\n\n' : isRow ? '\n' : ' '
      last.shown += joint === ' ' ? ` ${more}` : `${joint}${/^\s*/.exec(line)![0]}${more}`
    } else if (isRow) {
      close()
      list = undefined
      if (TABLE_RULE.test(line)) continue
      const cells = cellsOf(line)
      // The row above a rule names the columns and says nothing itself.
      if (TABLE_RULE.test(source[at + 1] ?? '') && ROW.test(source[at + 1] ?? '')) {
        columns = cells
        add({ kind: 'table', units: [], head: `${inline(line.trim())}\n${source[at + 1]!.trim()}` })
        continue
      }
      const before = columns.length > 0 || ROW.test(source[at - 1] ?? '') ? blocks.at(-1) : undefined
      const text = inline(rowOf(cells, columns))
      // A passage may begin in the middle of a table. Without its head, rows are no table in Markdown.
      const row = { text, shown: columns.length > 0 ? inline(line.trim()) : `- ${text}` }
      if (before) before.units.push(row)
      else add({ kind: 'list', units: [row] })
    } else {
      list = undefined
      paragraph.push(line.replace(/^\s*>\s?/, ''))
    }
  }
  close()
  return blocks.filter(({ units }) => units.length > 0)
}

/** Whether code belongs to the step of a list before it: it is indented, or the next step follows it, or the step announces it. */
function isOfStep(step: Unit, fence: string, source: string[], after: number): boolean {
  if (/^\s{2,}/.test(fence)) return true
  const number = Number(/^\s*(\d+)[.)]/.exec(step.shown)?.[1])
  if (Number.isNaN(number)) return false
  const next = source.slice(after).find((line) => line.trim() !== '')
  return step.text.endsWith(':') || Number(/^\s*(\d+)[.)]\s/.exec(next ?? '')?.[1]) === number + 1
}

/** The cells of a row. A pipe behind a backslash is text. */
const cellsOf = (line: string): string[] =>
  line
    .trim()
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'))

/** `name — column: value; column: value`. Several values each get the name of their column. */
function rowOf([name = '', ...values]: string[], [, ...columns]: string[]): string {
  const said = values.flatMap((value, index) => {
    const column = values.length > 1 ? (columns[index] ?? '') : ''
    return value === '' ? [] : [column === '' ? value : `${column}: ${value}`]
  })
  return [name, said.join('; ')].filter((part) => part !== '').join(' — ')
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
