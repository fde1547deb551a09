/** The table of docs/models.md: what was seen of each provider in this very run. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const FILE = join(import.meta.dirname, '../../../docs/models.md')
const BEGIN = '<!-- providers: written by `npm run providers` -->'
const END = '<!-- /providers -->'

export class Table {
  readonly #rows = new Map<string, Map<string, string>>()
  readonly #columns: string[]

  readonly #head: string

  /** @param columns in their order; a cell that nobody set is empty @param head of the column of rows' names */
  constructor(rows: string[], columns: string[], head = 'Provider') {
    this.#columns = columns
    this.#head = head
    for (const row of rows) this.#rows.set(row, new Map())
  }

  set(row: string, column: string, value: string): void {
    this.#rows.get(row)?.set(column, value)
  }

  /** Markdown, its columns aligned. */
  toString(): string {
    const lines = [
      [this.#head, ...this.#columns],
      ...[...this.#rows].map(([row, cells]) => [
        row,
        ...this.#columns.map((column) => cells.get(column) ?? ''),
      ]),
    ]
    const widths = lines[0]!.map((_, at) => Math.max(...lines.map((line) => line[at]!.length)))
    const [head, ...body] = lines.map(
      (line) => `| ${line.map((cell, at) => cell.padEnd(widths[at]!)).join(' | ')} |`,
    )
    const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`
    return [head, rule, ...body].join('\n')
  }
}

const between = (text: string): [before: string, table: string, after: string] => {
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)]
  if (begin < 0 || end < begin) throw new Error(`docs/models.md has no ${BEGIN} and ${END}`)
  return [text.slice(0, begin + BEGIN.length), text.slice(begin + BEGIN.length, end).trim(), text.slice(end)]
}

export const documented = (): string => between(readFileSync(FILE, 'utf8'))[1]

export function write(table: Table): void {
  const [before, , after] = between(readFileSync(FILE, 'utf8'))
  writeFileSync(FILE, `${before}\n\n${table}\n\n${after}`)
}
