/** What of a turn took which time, as bars on one line of time: pure. */
import type { Insight } from './insight'
import type { TurnTrace } from './wire'

export interface Span {
  name: string
  kind: 'search' | 'model' | 'words'
  /** milliseconds since the turn began */
  from: number
  to: number
  running?: boolean
}

const WAITING = 'Waiting for model'
const WRITING = 'Generating'

/** Calls besides the one that writes the answer. */
const PURPOSES: Record<string, string> = {
  standalone: 'Rewriting',
  followups: 'Suggesting',
  guardrail: 'Checking',
}

/** The spans of a turn that has ended, in the order in which they began. */
export function traceSpans({ searches, calls }: TurnTrace): Span[] {
  const spans: Span[] = [
    ...searches.map(
      ({ collection, started, took }): Span => ({
        name: `Search ${collection ?? ''}`.trim(),
        kind: 'search',
        from: started,
        to: started + took,
      }),
    ),
    ...calls.flatMap(({ purpose, started, first_token: first, took }): Span[] => {
      const end = started + took
      const other = PURPOSES[purpose]
      if (other !== undefined) return [{ name: other, kind: 'model', from: started, to: end }]
      const firstAt = Math.min(end, Math.max(started, first ?? started))
      return [
        ...(firstAt > started ? [{ name: WAITING, kind: 'model', from: started, to: firstAt } as const] : []),
        { name: WRITING, kind: 'words', from: firstAt, to: end },
      ]
    }),
  ]
  return spans.sort((a, b) => a.from - b.from)
}

/** The spans of a turn as they are seen while it runs. @param now milliseconds since the question was sent */
export function liveSpans({ retrieved, firstWords, ended }: Insight, now: number): Span[] {
  const end = ended ?? now
  const spans: Span[] = [{ name: 'Search', kind: 'search', from: 0, to: retrieved ?? end }]
  if (retrieved !== undefined) {
    spans.push({ name: WAITING, kind: 'model', from: retrieved, to: firstWords ?? end })
  }
  if (firstWords !== undefined) spans.push({ name: WRITING, kind: 'words', from: firstWords, to: end })
  const last = spans.at(-1)
  if (last && ended === undefined) last.running = true
  return spans
}
