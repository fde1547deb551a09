/** Tables and texts, which scroll where they are wider than their place. */
import type { ComponentChildren } from 'preact'
import { Copy } from './button'

interface TableProps {
  head: ComponentChildren[]
  rows: { key: string; cells: ComponentChildren[] }[]
  /** the column from which on there are numbers; absent: none */
  numbers?: number
  /** the column that names a row; 0 */
  named?: number
  class?: string
  /** whether it has neither a frame nor the look of other tables */
  bare?: boolean
  /** of a table that may scroll by the keyboard */
  label?: string
}

export function Table({ head, rows, numbers = Infinity, named = 0, bare, label, ...more }: TableProps) {
  const own = more.class ?? ''
  const classAt = (index: number) => (index >= numbers ? 'number-cell' : undefined)
  const table = (
    <table class={bare ? own : `table ${own}`}>
      <thead>
        <tr>
          {head.map((cell, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: columns keep their order
            <th key={index} scope="col" class={classAt(index)}>
              {cell}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ key, cells }) => (
          <tr key={key}>
            {cells.map((cell, index) =>
              index === named ? (
                <th key="name" scope="row">
                  {cell}
                </th>
              ) : (
                // biome-ignore lint/suspicious/noArrayIndexKey: columns keep their order
                <td key={index} class={classAt(index)}>
                  {cell}
                </td>
              ),
            )}
          </tr>
        ))}
      </tbody>
    </table>
  )
  if (bare) return table
  if (label === undefined) return <div class="table-scroll frame">{table}</div>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached with the keyboard
    <section class="table-scroll frame" tabIndex={0} aria-label={label}>
      {table}
    </section>
  )
}

interface RawProps {
  name: string
  text: string
  /** what is said of the button that copies it, and of the whole for screen readers */
  copy?: string
  label?: string
}

/** A text as it is, which scrolls where it is long and can be copied. */
export const Raw = ({ name, text, copy = `Copy: ${name}`, label = name }: RawProps) => (
  <div class="message">
    <div class="message-head ends">
      <span>{name}</span>
      <Copy text={text} label={copy} />
    </div>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached with the keyboard */}
    <section class="raw" aria-label={label} tabIndex={0}>
      <pre>{text}</pre>
    </section>
  </div>
)
