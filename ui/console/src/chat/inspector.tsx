/** The panel beside the chat: why an answer is what it is, while it is written. The whole of it is in the trace, once it ended. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Turn } from '../../../widget/src/session'
import { isRunning } from '../../../widget/src/turn'
import { to } from '../address'
import { type Loaded, Refusal, read, useLoaded } from '../api'
import { Button, Tool } from '../parts/button'
import { Loading, Problem } from '../parts/states'
import { type Chat, turnKey } from './chat'
import { liveSpans, traceSpans } from './spans'
import { Why } from './why'
import type { TracedTurn } from './wire'

interface InspectorProps {
  chat: Chat
  turn: Turn
  close: () => void
}

export function Inspector({ chat, turn, close }: InspectorProps) {
  const insight = chat.insight(turn).value
  const running = isRunning(turn)
  const trace = useTrace(chat, turn)
  const now = useClock(running, () => chat.age(turn))
  const told = trace.data?.trace
  const spans = told
    ? traceSpans(told)
    : running || insight.ended !== undefined
      ? liveSpans(insight, now)
      : []
  return (
    <aside class="panel" aria-label="Why this answer?">
      <header class="panel-head">
        <h2>Why this answer?</h2>
        {running && <span class="badge good">Live</span>}
        <span class="grow" />
        <Tool icon="close" label="Close the panel" title="Close" onClick={close} />
      </header>
      <div class="panel-body">
        <Why
          turn={turn}
          shown={turn.sources}
          traced={trace.data}
          insight={insight}
          spans={spans}
          finished={turn.state === 'done'}
        >
          {turn.state === 'done' && turn.number !== undefined && chat.id !== undefined && (
            <Button
              label="Fix this answer"
              icon="edit"
              href={to(['fix'], { a: `${chat.id}/${turn.number}` })}
            />
          )}
          {trace.error && <Problem error={trace.error} retry={trace.reload} />}
          {!told && !insight.searches && !trace.error && running && (
            <Loading lines={3} label="The turn is on its way" />
          )}
        </Why>
        {(turn.state === 'failed' || turn.state === 'stopped') && !told && (
          <p class="hint">There is no trace of this turn: it ended before there was anything to keep.</p>
        )}
      </div>
    </aside>
  )
}

/** The trace of a turn that has ended: in an answer, or in a fault. */
function useTrace({ id }: Chat, turn: Turn): Loaded<TracedTurn | undefined> {
  const { number, state } = turn
  const isKept = (state === 'done' || state === 'failed') && number !== undefined && id !== undefined
  return useLoaded(isKept ? `trace ${turnKey(turn)} ${state}` : undefined, async (signal) => {
    const path = `/conversations/${encodeURIComponent(id!)}/trace?turn=${number}`
    const kept = await read<{ turns: TracedTurn[] }>(path, signal).catch((error) => {
      // A conversation whose first turn failed has nothing stored.
      if (state === 'done') throw error
    })
    if (kept?.turns.length === 0) throw new Refusal(404, 'No trace of this turn is kept.')
    return kept?.turns[0]
  })
}

/** Milliseconds that go on while something runs. */
function useClock(running: boolean, read: () => number): number {
  const [now, setNow] = useState(read)
  const latest = useRef(read)
  latest.current = read
  useEffect(() => {
    if (!running) return
    const timer = setInterval(() => setNow(latest.current()), 100)
    return () => clearInterval(timer)
  }, [running])
  return running ? now : read()
}
