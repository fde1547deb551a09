/** Spans as bars on one line of time. */
import { duration } from '../parts/format'
import type { Span } from './spans'

export function Waterfall({ spans }: { spans: Span[] }) {
  const whole = Math.max(1, ...spans.map(({ to }) => to))
  const percent = (ms: number) => `${((ms / whole) * 100).toFixed(2)}%`
  return (
    <ol class="waterfall">
      {spans.map(({ name, kind, from, to, running }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the same name can come twice
        <li key={`${name} ${index}`}>
          <span class="span-name">{name}</span>
          <span class="span-track" aria-hidden="true">
            <span
              class={running ? `span-bar ${kind} running` : `span-bar ${kind}`}
              style={{ insetInlineStart: percent(from), width: percent(Math.max(to - from, whole / 200)) }}
            />
          </span>
          <span class="span-time">{duration(to - from)}</span>
        </li>
      ))}
      <li class="span-whole">
        <span class="span-name">Altogether</span>
        <span />
        <span class="span-time">{duration(whole)}</span>
      </li>
    </ol>
  )
}
