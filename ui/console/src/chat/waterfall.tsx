/** Spans as bars on one line of time. */
import { duration } from '../parts/format'
import type { Span } from './spans'

export function Waterfall({ spans }: { spans: Span[] }) {
  const whole = Math.max(1, ...spans.map(({ to }) => to))
  // Clipped rather than moved: what a bar does while it grows then shifts no layout.
  const between = (from: number, to: number) => {
    const percent = (ms: number) => `${((ms / whole) * 100).toFixed(2)}%`
    return `inset(0 ${percent(whole - Math.max(to, from + whole / 100))} 0 ${percent(from)} round 4px)`
  }
  return (
    <ol class="waterfall">
      {spans.map(({ name, kind, from, to, running }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the same name can come twice
        <li key={`${name} ${index}`}>
          <span class="span-name">{name}</span>
          <span class="span-track" aria-hidden="true">
            <span
              class={running ? `span-bar ${kind} running` : `span-bar ${kind}`}
              style={{ clipPath: between(from, to) }}
            />
          </span>
          <span class="span-time">{duration(to - from)}</span>
        </li>
      ))}
      <li class="span-whole">
        <span class="span-name">Total</span>
        <span />
        <span class="span-time">{duration(whole)}</span>
      </li>
    </ol>
  )
}
