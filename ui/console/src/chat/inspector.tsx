/** The panel beside the chat: how an answer came about, while it does. The whole of it is in the trace, once it ended. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Turn } from '../../../widget/src/session'
import { Refusal, read } from '../api'
import { Copy } from '../parts/copy'
import { count, duration, many } from '../parts/format'
import { Icon } from '../parts/icon'
import { Raw } from '../parts/raw'
import { Loading, Problem } from '../parts/states'
import type { Chat } from './chat'
import { Cuts, SearchBlock } from './searches'
import { liveSpans, traceSpans } from './spans'
import { Waterfall } from './waterfall'
import type { CallTrace, TracedTurn } from './wire'

interface InspectorProps {
  chat: Chat
  turn: Turn
  close: () => void
}

export function Inspector({ chat, turn, close }: InspectorProps) {
  const insight = chat.insight(turn).value
  const running = turn.state === 'searching' || turn.state === 'writing'
  const trace = useTrace(chat, turn)
  const now = useClock(running, () => chat.age(turn))
  const told = trace.traced?.trace
  const spans = told
    ? traceSpans(told)
    : running || insight.ended !== undefined
      ? liveSpans(insight, now)
      : []
  const standalone = told?.standalone ?? insight.standalone
  const cut = told?.cut ?? insight.cut ?? []
  return (
    <aside class="panel" aria-label="How it came about">
      <header class="panel-head">
        <h2>How it came about</h2>
        {running && <span class="badge live">Live</span>}
        <span class="grow" />
        <button type="button" class="tool" aria-label="Close the panel" title="Close" onClick={close}>
          <Icon name="close" />
        </button>
      </header>
      <div class="panel-body">
        <section>
          <h3>Question</h3>
          <p class="asked-question" dir="auto">
            {turn.question}
          </p>
          {standalone !== undefined && standalone !== turn.question ? (
            <>
              <p class="hint">With what was said before, it was rewritten and searched as:</p>
              <p class="asked-question rewritten" dir="auto">
                {standalone}
              </p>
            </>
          ) : (
            <p class="hint">It was searched as it was asked.</p>
          )}
        </section>
        {spans.length > 0 && (
          <section>
            <h3>Times</h3>
            <Waterfall spans={spans} />
          </section>
        )}
        {trace.error && <Problem error={trace.error} retry={trace.reload} />}
        {!told && !insight.searches && !trace.error && running && (
          <Loading lines={3} label="The turn is on its way" />
        )}
        {(told || insight.searches) && (
          <section>
            <h3>Searches</h3>
            {told
              ? told.searches.map((search, index) => (
                  <SearchBlock
                    // biome-ignore lint/suspicious/noArrayIndexKey: searches of a turn keep their order
                    key={index}
                    collection={search.collection ?? ''}
                    found={search.found ?? 0}
                    hits={(search.hits ?? []).map((hit) => ({ ...hit, title: titleIn(insight, hit.id) }))}
                    params={search.params}
                    took={search.took}
                    {...(search.error && { error: search.error.message })}
                    cut={cut}
                  />
                ))
              : insight.searches?.map((search, index) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: searches of a turn keep their order
                  <SearchBlock key={index} {...search} cut={cut} />
                ))}
          </section>
        )}
        {(told || insight.searches) && <Cuts cut={cut} sources={insight.sources} />}
        {told && (
          <section>
            <h3>Calls to models</h3>
            {told.calls.length === 0 && (
              <p class="hint">
                {told.copy_of === undefined
                  ? 'No model was called.'
                  : 'The answer was taken over from the same question, asked a moment before.'}
              </p>
            )}
            {told.calls.map((call, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: calls of a turn keep their order
              <CallBlock key={index} call={call} />
            ))}
            {told.shortened && <p class="hint">This trace was too long to be kept whole: texts end early.</p>}
          </section>
        )}
        {told && trace.traced && turn.state === 'done' && (
          <section>
            <h3>Result</h3>
            <dl class="facts">
              <dt>Model</dt>
              <dd>{trace.traced.usage.model}</dd>
              <dt>Tokens in</dt>
              <dd>{count(trace.traced.usage.input_tokens ?? 0)}</dd>
              <dt>Tokens out</dt>
              <dd>{count(trace.traced.usage.output_tokens ?? 0)}</dd>
              <dt>Ended</dt>
              <dd>{trace.traced.finish_reason}</dd>
              {trace.traced.usage.estimated && (
                <>
                  <dt>Counted</dt>
                  <dd>estimated: the provider reported none</dd>
                </>
              )}
            </dl>
          </section>
        )}
        {(turn.state === 'failed' || turn.state === 'stopped') && !told && (
          <p class="hint">There is no trace of this turn: it ended before there was anything to keep.</p>
        )}
      </div>
    </aside>
  )
}

const titleIn = (insight: { searches?: { hits: { id?: string; title: string }[] }[] }, id?: string): string =>
  insight.searches?.flatMap(({ hits }) => hits).find((hit) => hit.id === id)?.title ?? id ?? ''

const PURPOSES: Record<string, string> = {
  answer: 'Writes the answer',
  standalone: 'Rewrites the question',
  followups: 'Suggests what to ask next',
  guardrail: 'Checks instructions',
}

function CallBlock({ call }: { call: CallTrace }) {
  const { purpose, model, prompt, text, error, failed = [], took } = call
  return (
    <div class="block">
      <div class="block-head">
        <strong>{PURPOSES[purpose] ?? purpose}</strong>
        <span class="badge">{model}</span>
        <span class="grow" />
        <span class="soft">{duration(took)}</span>
      </div>
      {call.input_tokens + call.output_tokens > 0 && (
        <p class="soft">
          {many(call.input_tokens, 'token')} in, {count(call.output_tokens)} out
          {call.estimated ? ' (estimated)' : ''}
        </p>
      )}
      {failed.map((each) => (
        <p key={each.model} class="bad">
          {each.model} failed before it: {each.error}
        </p>
      ))}
      {error && <p class="bad">{error}</p>}
      {text && (
        <details>
          <summary>What it said</summary>
          <Raw text={text} label="What it said" />
        </details>
      )}
      <details>
        <summary>The exact prompt</summary>
        {prompt.map(({ role, content }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: messages of a prompt keep their order
          <div key={index} class="message">
            <div class="message-head">
              <span>{role}</span>
              <Copy text={content} label={`Copy the message of ${role}`} />
            </div>
            <Raw text={content} label={`Message of ${role}`} />
          </div>
        ))}
      </details>
    </div>
  )
}

/** The trace of a turn that has ended: in an answer, or in a fault. */
function useTrace(chat: Chat, turn: Turn) {
  const [state, setState] = useState<{ of?: Turn; traced?: TracedTurn; error?: Refusal }>({})
  const [tries, setTries] = useState(0)
  const { number, state: turnState } = turn
  const { id } = chat
  // biome-ignore lint/correctness/useExhaustiveDependencies: `tries` asks for the same once more
  useEffect(() => {
    if ((turnState !== 'done' && turnState !== 'failed') || number === undefined || id === undefined) return
    const abort = new AbortController()
    read<{ turns: TracedTurn[] }>(
      `/conversations/${encodeURIComponent(id)}/trace?turn=${number}`,
      abort.signal,
    ).then(
      ({ turns: [traced] }) =>
        setState(
          traced
            ? { of: turn, traced }
            : { of: turn, error: new Refusal(404, 'No trace of this turn is kept.') },
        ),
      (error) => {
        if (abort.signal.aborted) return
        // A conversation whose first turn failed has nothing stored.
        if (turnState === 'done') {
          setState({ of: turn, error: error instanceof Refusal ? error : new Refusal(0, String(error)) })
        }
      },
    )
    return () => abort.abort()
  }, [turn, turnState, number, id, tries])
  const own = state.of === turn && (turnState === 'done' || turnState === 'failed') ? state : {}
  return { traced: own.traced, error: own.error, reload: () => setTries((before) => before + 1) }
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
