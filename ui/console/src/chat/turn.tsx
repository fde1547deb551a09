/** A turn of the chat: the widget's own view of it, and what the console adds below. */
import { useEffect, useRef } from 'preact/hooks'
import type { Turn } from '../../../widget/src/session'
import { isRunning } from '../../../widget/src/turn'
import { type TurnHost, TurnView } from '../../../widget/src/turn-view'
import { to } from '../address'
import { Button } from '../parts/button'
import { duration, many } from '../parts/format'
import type { Chat } from './chat'

interface TurnProps {
  turn: Turn
  host: TurnHost
  chat: Chat
  /** whether the panel beside the chat is about this turn */
  inspected: boolean
  inspect: () => void
}

export function TurnItem({ turn, host, chat, inspected, inspect }: TurnProps) {
  const holder = useRef<HTMLDivElement>(null)
  const view = useRef<TurnView>(undefined)
  // A drawing of many deltas, once a frame.
  const drawn = chat.drawn.value
  useEffect(() => {
    const made = new TurnView(turn, host)
    view.current = made
    holder.current?.append(made.element)
    return () => made.element.remove()
  }, [turn, host])
  // biome-ignore lint/correctness/useExhaustiveDependencies: `drawn` counts the changes to draw
  useEffect(() => {
    if (!chat.changed.has(turn)) return
    const frame = requestAnimationFrame(() => {
      chat.changed.delete(turn)
      view.current?.update()
    })
    return () => cancelAnimationFrame(frame)
  }, [drawn, turn])
  const running = isRunning(turn)
  const { usage, timings } = chat.insight(turn).value
  return (
    <div class="turn-item">
      <div ref={holder} />
      {/* Below an answer that grows it would move all the time. The panel that it opens is there already. */}
      <div class={running && inspected ? 'turn-foot line waiting' : 'turn-foot line'}>
        <Button
          label="Why this answer?"
          kind="pill"
          icon="inspect"
          aria-pressed={inspected}
          onClick={inspect}
          title="The searches, the prompt and the times behind this answer"
        />
        {turn.state === 'done' && turn.number !== undefined && chat.id !== undefined && (
          <Button
            label="Compare"
            kind="pill"
            icon="compare"
            href={to(['compare'], { a: `${chat.id}/${turn.number}` })}
          />
        )}
        {usage && turn.state === 'done' && (
          <p class="turn-meta line aside">
            <span>Answered by {usage.model}</span>
            {timings?.finished !== undefined && <span>{duration(timings.finished)}</span>}
            {(usage.input_tokens ?? 0) + (usage.output_tokens ?? 0) > 0 && (
              <span>{many((usage.input_tokens ?? 0) + (usage.output_tokens ?? 0), 'token')}</span>
            )}
          </p>
        )}
      </div>
    </div>
  )
}
