/** Why an answer is what it is: what was searched, the part of each document in it, model, time and cost, and the prompt. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { priceOf } from '../../../../scripts/parley/prices.mjs'
import { plain } from '../../../widget/src/plain'
import type { Turn } from '../../../widget/src/session'
import { isRunning } from '../../../widget/src/turn'
import type { Citation } from '../../../widget/src/wire'
import { pageOf, to } from '../address'
import { type Loaded, Refusal, read, useLoaded } from '../api'
import { Calls } from '../conversations/calls'
import { Doubted } from '../conversations/said'
import { Button, Tool } from '../parts/button'
import { count, duration, engineName, likeness, many, money, share } from '../parts/format'
import { Raw } from '../parts/list'
import { Loading, Problem } from '../parts/page'
import { type Chat, turnKey } from './chat'
import { type Insight, liveSpans, type Span, traceSpans } from './insight'
import { refOf, useTitles } from './titles'
import type { CallTrace, Cut, Hit, PromptSource, SearchTrace, TracedTurn } from './wire'

interface WhyProps {
  turn: { question: string; answer: string; citations: readonly Citation[] }
  /** the digits and titles by which the page shows sources */
  shown?: readonly { collection: string; documentId: string; number: number; title: string }[]
  /** the whole, once the turn has ended */
  traced: TracedTurn | undefined
  /** what was learnt while it ran, and the times of that */
  insight?: Insight
  live?: Span[]
  /** whether its answer is whole */
  finished?: boolean
  /** whether question and documents are all that is shown */
  brief?: boolean
  /** what is to be said before what was found */
  children?: ComponentChildren
}

/** A search as its trace has it, or as it was seen while the turn ran. */
type Search = Partial<Omit<SearchTrace, 'hits' | 'error'>> & {
  hits?: (Hit & { title?: string })[]
  fault?: string
}

export function Why({ turn, shown = [], traced, insight = {}, live = [], ...more }: WhyProps) {
  const { question, answer, citations } = turn
  const { finished = true, brief = false, children } = more
  const told = traced?.trace
  const spans = told ? traceSpans(told) : live
  const searches: Search[] =
    told?.searches.map(({ error, ...search }) => ({ ...search, ...(error && { fault: error.message }) })) ??
    insight.searches?.map(({ error, ...search }) => ({ ...search, ...(error && { fault: error }) })) ??
    []
  const passages = passagesOf({
    searches,
    ...(insight.sources && { sources: insight.sources }),
    cut: told?.cut ?? insight.cut ?? [],
    answer,
    citations,
  })
  const digits = new Map(
    shown.map((each) => [refOf({ collection: each.collection, document_id: each.documentId }), each]),
  )
  // A source of which only the citation is known is called by its id.
  const known = (ref: Passage) => {
    const title = digits.get(refOf(ref))?.title ?? ref.title
    return title === ref.document_id ? undefined : title
  }
  const read = useTitles(passages.filter((each) => known(each) === undefined))
  const called = (ref: Passage) => known(ref) ?? read(ref)
  const titles = new Map(passages.map((each) => [refOf(each), called(each)]))
  const searched = told !== undefined || insight.searches !== undefined
  return (
    <>
      <Question question={question} standalone={told?.standalone ?? insight.standalone} />
      {children}
      {searched && (
        <section>
          <h3>What the answer is based on</h3>
          {searches.map(
            ({ fault, engine, collection = '' }) =>
              fault && (
                <p key={fault} class="bad">
                  {engine ? `${engineName(engine)} failed: ` : `The search in ${collection} failed: `}
                  {fault}
                </p>
              ),
          )}
          <p class="hint">{summaryOf(searches, passages, finished)}</p>
          {PARTS.map(({ part, title }) => (
            <Passages
              key={part}
              title={part === 'read' && !finished ? 'Given to the model' : title}
              passages={passages.filter((each) => each.part === part)}
              called={called}
              digit={(ref) => digits.get(refOf(ref))?.number}
            />
          ))}
          {traced && <Supported answer={answer} traced={traced} />}
        </section>
      )}
      {!brief && traced?.calls && (
        <section>
          <h3>What it called</h3>
          <Calls of={traced.calls} />
        </section>
      )}
      {!brief && spans.length > 0 && (
        <section>
          <h3>{told ? 'Model, time and cost' : 'Time'}</h3>
          {told && traced && finished && <Facts traced={traced} />}
          {told?.calls.flatMap(({ failed = [], error }) =>
            [
              ...failed.map((each) => `${each.model} failed before: ${each.error}`),
              ...(error ? [error] : []),
            ].map((line) => (
              <p key={line} class="bad">
                {line}
              </p>
            )),
          )}
          <Waterfall spans={spans} />
        </section>
      )}
      {!brief && told && (
        <section>
          <h3>What the model was sent</h3>
          {told.calls.length === 0 && (
            <p class="hint">
              {told.copy_of === undefined
                ? 'No model was called.'
                : 'Nothing: the same question was asked a moment before, and its answer was used again.'}
            </p>
          )}
          {told.calls.map((call, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: calls of a turn keep their order
            <Call key={index} call={call} />
          ))}
          {told.shortened && <p class="hint">This record was too long to be kept whole: texts end early.</p>}
        </section>
      )}
      {!brief && searches.length > 0 && (
        <details>
          <summary>Scores and search options</summary>
          {searches.map((search, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: searches of a turn keep their order
            <Numbers key={index} search={search} titles={titles} />
          ))}
        </details>
      )}
    </>
  )
}

function Question({ question, standalone }: { question: string; standalone: string | undefined }) {
  const rewritten = standalone !== undefined && standalone !== question
  return (
    <section>
      <h3>Question</h3>
      <p class="asked-question" dir="auto">
        {question}
      </p>
      <p class="hint">
        {rewritten
          ? 'With what was said before, it was rewritten and searched as:'
          : 'Searched with the original question.'}
      </p>
      {rewritten && (
        <p class="asked-question rewritten" dir="auto">
          {standalone}
        </p>
      )}
    </section>
  )
}

/** How many of the sentences that cite a document are shown. */
const MOST_SAID = 3

const PARTS = [
  { part: 'cited', title: 'Cited' },
  { part: 'read', title: 'Read, not cited' },
  { part: 'left', title: 'Left out: the prompt was full' },
] as const

/** What was found, and what became of it, in a sentence or two. */
function summaryOf(searches: readonly Search[], passages: readonly Passage[], finished: boolean): string {
  const found = searches.reduce((sum, search) => sum + (search.found ?? 0), 0)
  if (passages.length === 0) return 'No document matched the question.'
  const matched =
    found > passages.length
      ? `${many(found, 'document')} matched; the best ${count(passages.length)} were taken.`
      : `${many(passages.length, 'document')} matched.`
  if (passages.every(({ cut }) => cut === undefined)) return `${matched} All of them fit into the prompt.`
  const { length: left } = passages.filter(({ part }) => part === 'left')
  return left > 0 || !finished ? matched : `${matched} Some were shortened to fit into the prompt.`
}

interface PassagesProps {
  title: string
  passages: readonly Passage[]
  called: (ref: Passage) => string
  digit: (ref: PromptSource) => number | undefined
}

function Passages({ title, passages, called, digit }: PassagesProps) {
  if (passages.length === 0) return null
  return (
    <>
      <h4>{title}</h4>
      <ul class="parts pile">
        {passages.map((each) => {
          const { cut, says } = each
          const number = digit(each)
          return (
            <li key={refOf(each)}>
              {number !== undefined && <span class="number">{number}</span>}
              <a href={pageOf(refOf(each))} dir="auto">
                {called(each)}
              </a>
              {says.slice(0, MOST_SAID).map((text) => (
                <span key={text} class="part-says aside" dir="auto">
                  “{text}”
                </span>
              ))}
              {says.length > MOST_SAID && (
                <span class="part-says aside">and {many(says.length - MOST_SAID, 'sentence')} more</span>
              )}
              {cut && cut.passages > 0 && (
                <span class="part-cut aside">
                  {cut.passages} of {cut.of} passages fit into the prompt
                </span>
              )}
            </li>
          )
        })}
      </ul>
    </>
  )
}

function Supported({ answer, traced: { support = [] } }: { answer: string; traced: TracedTurn }) {
  if (support.length === 0) return null
  if (support.some((sentence) => sentence.support !== 'supported'))
    return <Doubted answer={answer} support={support} />
  return (
    <p class="hint">
      The documents support {support.length === 1 ? 'its sentence' : `all ${support.length} sentences`}.
    </p>
  )
}

const ENDINGS: Record<string, string> = {
  stop: 'Complete',
  length: 'Cut off at the limit for the length of answers',
  content_filter: 'Stopped by the filter of the provider',
}

function Facts({ traced: { trace, usage, timings, finish_reason: ended } }: { traced: TracedTurn }) {
  const { input_tokens: read = 0, output_tokens: written = 0 } = usage
  const about = usage.estimated ? 'about ' : ''
  const facts: [string, string | undefined][] = [
    ['Assistant', trace.assistant],
    ['Model', usage.model],
    ['Time', timings.finished === undefined ? undefined : duration(timings.finished)],
    ['Tokens', read + written > 0 ? `${about}${count(read)} read, ${count(written)} written` : undefined],
    ['Cost', costOf(trace.calls)],
    ['Answer', ENDINGS[ended] ?? ended],
  ]
  return (
    <dl class="facts">
      {facts.map(
        ([name, value]) =>
          value && (
            <div key={name} class="fact-row">
              <dt class="soft">{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  )
}

/** What the calls of a turn cost, its failed attempts among them. */
function costOf(calls: readonly CallTrace[]): string {
  const paid = calls.flatMap(({ failed = [], ...call }) => [call, ...failed])
  const dollars = paid.map(({ model, input_tokens: read = 0, output_tokens: written = 0 }) => {
    const price = priceOf(model)
    return read + written === 0 ? 0 : price && (read * price.in + written * price.out) / 1e6
  })
  if (dollars.some((each) => each === undefined)) return 'The price of this model is not known here'
  const sum = dollars.reduce<number>((total, each) => total + (each ?? 0), 0)
  return sum === 0 ? 'Nothing' : money(sum)
}

const PURPOSES: Record<string, string> = {
  answer: 'Write the answer',
  standalone: 'Rewrite the question',
  followups: 'Suggest questions',
  guardrail: 'Check for instructions',
}

function Call({ call: { purpose, model, prompt, text, took } }: { call: CallTrace }) {
  return (
    <details class="block frame">
      <summary>
        {PURPOSES[purpose] ?? purpose}
        <span class="soft">
          {' '}
          · {model} · {duration(took)}
        </span>
      </summary>
      {prompt.map(({ role, content }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: messages of a prompt keep their order
        <Raw key={index} name={role} text={content} />
      ))}
      {text && <Raw name="reply" text={text} />}
    </details>
  )
}

/** The columns of a table of scores, and what each says. */
const SCORES = {
  Document: undefined,
  Keywords: 'Words in common with the question, as a share of the best hit',
  Meaning: 'Likeness in meaning: 100% is the same',
  Score: 'What the order goes by: keywords and meaning together',
}

/** What a search was asked, and how it scored what it found. */
function Numbers({ search, titles }: { search: Search; titles: ReadonlyMap<string, string> }) {
  const { collection = '', engine, found = 0, took, hits = [], params = {} } = search
  const words = Math.max(1, ...hits.map(({ text_match = 0 }) => text_match))
  return (
    <div class="block frame">
      <div class="line">
        <strong>{collection || 'Search'}</strong>
        <span class="soft">
          {[many(found, 'hit'), engine && engineName(engine), took !== undefined && duration(took)]
            .filter(Boolean)
            .join(' · ')}
        </span>
      </div>
      {hits.length > 0 && (
        <table class="score-table">
          <thead>
            <tr class="soft">
              {Object.entries(SCORES).map(([name, says]) => (
                <th key={name} scope="col" title={says}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {hits.map(({ id = '', text_match: match, vector_distance: distance, score }, rank) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: an id can be missing, and ranks are unique
              <tr key={rank}>
                <th scope="row" dir="auto">
                  {titles.get(refOf({ collection, document_id: id })) ?? id}
                </th>
                <td>{match ? share(match / words) : '–'}</td>
                <td>{distance === undefined ? '–' : share(likeness(distance))}</td>
                <td>{score === undefined ? '–' : score.toFixed(2)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <dl class="facts">
        {Object.entries(params).map(([name, value]) => (
          <div key={name} class="fact">
            <dt class="soft">{name}</dt>
            <dd>{typeof value === 'string' ? value : JSON.stringify(value)}</dd>
          </div>
        ))}
      </dl>
    </div>
  )
}

// =============================================================================
// What each document that a turn found has to do with its answer: pure.

/** A document and its part in an answer. */
interface Passage extends PromptSource {
  /** as the search had it; absent in traces */
  title?: string
  /** `cited`: the answer names it; `read`: the model had it; `left`: it did not fit */
  part: 'cited' | 'read' | 'left'
  /** the sentences of the answer that cite it */
  says: string[]
  /** how much of it the model had, if not all */
  cut?: Cut
}

interface Answered {
  searches: readonly Search[]
  /** the documents of the prompt, where they are known: attached ones are in no search */
  sources?: readonly PromptSource[]
  cut: readonly Cut[]
  answer: string
  citations: readonly Citation[]
}

/** Each document once, in the order of the searches. */
export function passagesOf({ searches, sources = [], cut, answer, citations }: Answered): Passage[] {
  const found = searches.flatMap(({ collection = '', hits = [] }) =>
    hits.map(({ id = '', title }) => ({
      collection,
      document_id: id,
      ...(title !== undefined && { title }),
    })),
  )
  const each = new Map<string, PromptSource & { title?: string }>()
  for (const ref of [...found, ...sources]) if (!each.has(refOf(ref))) each.set(refOf(ref), ref)
  return [...each].map(([name, ref]) => {
    const shortened = cut.find((one) => refOf(one) === name)
    const says = citations
      .filter((one) => refOf(one) === name)
      .map(({ start, end }) => said(answer.slice(start, end)))
    const part = says.length > 0 ? 'cited' : shortened?.passages === 0 ? 'left' : 'read'
    return { ...ref, part, says: [...new Set(says)].filter(Boolean), ...(shortened && { cut: shortened }) }
  })
}

/** A sentence of an answer without its labels and marks. */
const said = (text: string): string =>
  plain(text.replace(/[ \t]*\[[^[\]\n]+\](?!\()/g, '').replace(/\s*\|\s*/g, ' '))

/** Spans as bars on one line of time. */
function Waterfall({ spans }: { spans: Span[] }) {
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
          <span class="span-name cut">{name}</span>
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
        <span class="span-name cut">Total</span>
        <span />
        <span class="span-time">{duration(whole)}</span>
      </li>
    </ol>
  )
}

// =============================================================================
// The panel beside the chat: why an answer is what it is, while it is written. The whole of it is in the trace, once it ended.

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
  const a = chat.addressOf(turn)
  return (
    <aside class="panel" aria-label="Why this answer?">
      <header class="panel-head ends">
        <h2>Why this answer?</h2>
        {running && <span class="badge good">Live</span>}
        <span class="grow" />
        <Tool icon="close" label="Close" of="the panel" onClick={close} />
      </header>
      <div class="panel-body why">
        <Why
          turn={turn}
          shown={turn.sources}
          traced={trace.data}
          insight={insight}
          live={running || insight.ended !== undefined ? liveSpans(insight, now) : []}
          finished={turn.state === 'done'}
        >
          {a && <Button label="Fix this answer" icon="edit" href={to(['fix'], { a })} />}
          {trace.error && <Problem error={trace.error} retry={trace.reload} />}
          {!told && !insight.searches && !trace.error && running && (
            <Loading label="The turn is on its way" />
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
