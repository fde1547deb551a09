/** How an answer came about: its question, times, searches, prompt and calls, as far as they are known. */
import type { ComponentChildren } from 'preact'
import { Copy } from '../parts/copy'
import { count, duration, many } from '../parts/format'
import { Raw } from '../parts/raw'
import type { Insight } from './insight'
import { Cuts, SearchBlock } from './searches'
import type { Span } from './spans'
import { Waterfall } from './waterfall'
import type { CallTrace, TracedTurn } from './wire'

interface InsightsProps {
  question: string
  /** the whole, once the turn has ended */
  traced: TracedTurn | undefined
  /** what was learnt while it ran */
  insight: Insight
  spans: Span[]
  finished: boolean
  /** what is to be said before the searches */
  children?: ComponentChildren
}

export function Insights({ question, traced, insight, spans, finished, children }: InsightsProps) {
  const told = traced?.trace
  const standalone = told?.standalone ?? insight.standalone
  const cut = told?.cut ?? insight.cut ?? []
  return (
    <>
      <section>
        <h3>Question</h3>
        <p class="asked-question" dir="auto">
          {question}
        </p>
        {standalone !== undefined && standalone !== question ? (
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
      {children}
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
                  {...(search.engine && { engine: search.engine })}
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
      {told && traced && finished && (
        <section>
          <h3>Result</h3>
          <dl class="facts">
            {told.assistant !== undefined && (
              <>
                <dt>Assistant</dt>
                <dd>{told.assistant}</dd>
              </>
            )}
            <dt>Model</dt>
            <dd>{traced.usage.model}</dd>
            <dt>Tokens in</dt>
            <dd>{count(traced.usage.input_tokens ?? 0)}</dd>
            <dt>Tokens out</dt>
            <dd>{count(traced.usage.output_tokens ?? 0)}</dd>
            <dt>Ended</dt>
            <dd>{traced.finish_reason}</dd>
            {traced.usage.estimated && (
              <>
                <dt>Counted</dt>
                <dd>estimated: the provider reported none</dd>
              </>
            )}
          </dl>
        </section>
      )}
    </>
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
