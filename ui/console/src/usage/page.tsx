/** What was asked and spent, by day, model and key, and what went wrong. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { priced } from '../../../../scripts/parley/prices.mjs'
import { mapFew } from '../../../../src/lib/few'
import { go, NEW, place, to } from '../address'
import { read, useLoaded } from '../api'
import { listed, type Model } from '../chat/choices'
import { failedTurns, listConversations } from '../conversations/record'
import type { Key } from '../keys/page'
import { Button } from '../parts/button'
import { SelectField } from '../parts/form'
import { ago, count, many, money, day as shownDay } from '../parts/format'
import { Card, Empty, Page, Shown } from '../parts/page'
import {
  type Budget,
  budgetsOf,
  byDay,
  byName,
  ceiling,
  daysOf,
  groupedFailures,
  type Measure,
  total,
  type UsageRow,
} from './sums'

const DAY_MS = 86_400_000
const SPANS = ['7', '30', '90']
/** What one answer of the server holds at most. */
const MOST = 1_000

const MEASURES: Record<Measure, string> = {
  turns: 'Turns',
  input_tokens: 'Tokens in',
  output_tokens: 'Tokens out',
  dollars: 'Cost',
}

const shownAs = (measure: Measure) => (measure === 'dollars' ? money : count)

const NOTHING = { rows: [] as UsageRow[], unpriced: [] as string[], models: [] as Model[], keys: [] as Key[] }

const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10)

export default function UsagePage() {
  const given = place.value.query.get('days') ?? ''
  const days = SPANS.includes(given) ? given : '30'
  const [measure, setMeasure] = useState<Measure>('turns')
  const last = dayOf(Date.now())
  const first = dayOf(Date.now() - (Number(days) - 1) * DAY_MS)
  const loaded = useLoaded(`usage ${first} ${last}`, async (signal) => {
    const rows: UsageRow[] = []
    for (;;) {
      const query = new URLSearchParams({
        from: first,
        to: last,
        limit: String(MOST),
        offset: String(rows.length),
      })
      const { usage } = await read<{ usage: UsageRow[] }>(`/usage?${query}`, signal)
      rows.push(...usage)
      if (usage.length < MOST) break
    }
    const [models = [], { keys } = { keys: [] }] = await Promise.all([
      listed<Model[]>('/conversations/models', signal),
      listed<{ keys: Key[] }>('/keys', signal),
    ])
    return { ...priced(rows, models), models, keys }
  })
  const { rows, unpriced, models, keys } = loaded.data ?? NOTHING
  const budgets = [
    ...budgetsOf(
      keys.map(({ id, description, limits }) => ({
        ...limits,
        id: String(id),
        name: `Key ${description || id}`,
      })),
      rows,
      'key',
      last,
    ),
    ...budgetsOf(
      models.map((model) => ({ ...model, name: `Model ${model.id}` })),
      rows,
      'conversation_model_id',
      last,
    ),
  ]
  return (
    <Page
      title="Usage"
      lead="Turns and tokens as they were counted, in UTC days, and what they cost. Budgets use these numbers."
      actions={
        <SelectField
          label="Time"
          bare
          value={days}
          options={SPANS.map((each) => [each, `The last ${each} days`] as const)}
          change={(days) => go(to(['usage'], { days }), { replace: true })}
        />
      }
    >
      <Shown of={loaded}>
        {() =>
          rows.length === 0 && (
            <Empty icon="usage" title="Nothing was asked in this time">
              <p>Each question that is answered adds a turn here, with the tokens that its model reports.</p>
              <Button label="Ask a question" kind="primary" href={NEW} />
            </Empty>
          )
        }
      </Shown>
      {rows.length > 0 && (
        <>
          <dl class="tiles pile">
            {(Object.keys(MEASURES) as Measure[]).map((each) => (
              <div key={each} class="tile frame">
                <dt class="aside">{MEASURES[each]}</dt>
                <dd>{shownAs(each)(total(rows, each))}</dd>
              </div>
            ))}
          </dl>
          {unpriced.length > 0 && (
            <p class="hint">
              No price is known of {unpriced.join(', ')}. Reckon it with{' '}
              <code>parley usage --price MODEL=IN,OUT</code>.
            </p>
          )}
          <Card
            title="By day"
            beside={
              <SelectField
                label="What is plotted"
                bare
                small
                value={measure}
                options={Object.entries(MEASURES)}
                change={(chosen) => setMeasure(chosen as Measure)}
              />
            }
          >
            <Chart
              title={`${MEASURES[measure]} by day`}
              values={byDay(rows, daysOf(first, last), measure)}
              shown={shownAs(measure)}
            />
          </Card>
          <div class="split">
            <Shares title="By model" rows={rows} name="conversation_model_id" measure={measure} />
            <Shares title="By key" rows={rows} name="key" called={namesOf(keys)} measure={measure} />
          </div>
        </>
      )}
      {loaded.data && <Failures days={days} />}
      {budgets.length > 0 && <Budgets budgets={budgets} />}
    </Page>
  )
}

const Budgets = ({ budgets }: { budgets: Budget[] }) => (
  <Card title="Budgets of today">
    <p class="hint">They begin anew at midnight UTC.</p>
    <Meters
      of={budgets.map(({ name, unit, used, most }) => ({
        name,
        value: `${count(used)} of ${count(most)} ${unit}${used >= most ? ', spent' : ''}`,
        part: Math.min(1, used / most),
        isSpent: used >= most,
      }))}
    />
  </Card>
)

interface Metered {
  name: string
  value: string
  /** from 0 to 1 */
  part: number
  isSpent?: boolean
}

/** Names with what each came to, as a number and as a bar. */
const Meters = ({ of }: { of: Metered[] }) => (
  <ul class="share pile">
    {of.map(({ name, value, part, isSpent }) => (
      <li key={`${name} ${value}`}>
        <span>{name}</span>
        <strong class={isSpent ? 'bad' : ''}>{value}</strong>
        <progress value={part} aria-hidden="true" />
      </li>
    ))}
  </ul>
)

/** What keys are called, by id as usage names it. The id stands beside a description that several keys have. */
function namesOf(keys: readonly Key[]): Map<string, string> {
  const isShared = (text: string) => keys.filter(({ description }) => description === text).length > 1
  return new Map(
    keys.map(({ id, description }) => [
      String(id),
      description === '' ? `Key ${id}` : `${description}${isShared(description) ? ` (${id})` : ''}`,
    ]),
  )
}

interface SharesProps {
  title: string
  rows: UsageRow[]
  name: 'key' | 'conversation_model_id'
  /** what is shown in place of a name */
  called?: Map<string, string>
  measure: Measure
}

function Shares({ title, rows, name, called, measure }: SharesProps) {
  const shares = byName(rows, name, measure)
  const most = Math.max(...shares.map(({ value }) => value)) || 1
  return (
    <Card title={title}>
      <Meters
        of={shares.map(({ name, value }) => ({
          name: called?.get(name) ?? name,
          value: shownAs(measure)(value),
          part: value / most,
        }))}
      />
    </Card>
  )
}

// =============================================================================
// What went wrong in the last days, the most frequent first.

/** Conversations whose failed turns are read: the latest. */
const READ = 20
const AT_ONCE = 4

export function Failures({ days }: { days: string }) {
  const loaded = useLoaded(`failures ${days}`, async (signal) => {
    const from = Date.now() - Number(days) * DAY_MS
    const filter = { failed: 'true', from: String(from), limit: READ }
    const { conversations } = await listConversations(filter, signal)
    const failed = await mapFew(conversations, AT_ONCE, async ({ id }) =>
      (await failedTurns(id, signal)).map((turn) => ({ ...turn, conversation: id })),
    )
    return groupedFailures(failed.flat().filter(({ created_at: at }) => at >= from))
  })
  return (
    <Card
      title="Errors"
      beside={<a href={to(['conversations'], { only: 'failed', days })}>All failed answers</a>}
    >
      <Shown of={loaded} label="Reading errors">
        {(failures) =>
          failures.length === 0 ? (
            <p class="hint">No question failed in this time.</p>
          ) : (
            <ul class="faults pile">
              {failures.map(({ message, count, last }) => (
                <li key={message} class="line">
                  <span class="bad">{message}</span>
                  <span class="soft">{many(count, 'time')}, last </span>
                  <a href={to(['conversations', 'read', last.conversation])}>{ago(last.created_at)}</a>
                </li>
              ))}
            </ul>
          )
        }
      </Shown>
    </Card>
  )
}

// =============================================================================
// Bars, one a day. What they say stands in a table too, for whoever does not see them.

/** pixels for the name of a day */
const LABEL = 84
const HEIGHT = 220
const LEFT = 46
const BOTTOM = 24
const TOP = 12
const GAP = 0.3
/** A page that is hidden or folded gives no room at all; bars have a width even so. */
const NARROWEST = 200

interface ChartProps {
  title: string
  values: { day: string; value: number }[]
  /** how a number is written */
  shown?: (value: number) => string
}

function Chart({ title, values, shown = count }: ChartProps) {
  const figure = useRef<HTMLElement>(null)
  const [width, setWidth] = useState(900)
  // Drawn as wide as there is room: letters keep their size on a phone.
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) =>
      setWidth(Math.max(NARROWEST, entry?.contentRect.width ?? 0)),
    )
    if (figure.current) observer.observe(figure.current)
    return () => observer.disconnect()
  }, [])
  const top = ceiling(Math.max(...values.map(({ value }) => value)))
  const step = (width - LEFT) / values.length
  const heightOf = (value: number) => (value / top) * (HEIGHT - TOP - BOTTOM)
  const every = Math.ceil((values.length * LABEL) / (width - LEFT))
  return (
    <figure ref={figure} class="figure">
      <svg class="chart" viewBox={`0 0 ${width} ${HEIGHT}`} aria-hidden="true">
        {(top === 1 ? [0, 1] : [0, 0.5, 1]).map((part) => {
          const y = HEIGHT - BOTTOM - heightOf(top * part)
          return (
            <g key={part}>
              <line x1={LEFT} x2={width} y1={y} y2={y} />
              <text x={LEFT - 8} y={y + 4} text-anchor="end">
                {shown(top * part)}
              </text>
            </g>
          )
        })}
        {values.map(({ day, value }, index) => (
          <g key={day}>
            <title>{`${shownDay(day)}: ${shown(value)}`}</title>
            <rect
              fill="transparent"
              x={LEFT + index * step}
              y={TOP}
              width={step}
              height={HEIGHT - TOP - BOTTOM}
            />
            <rect
              class="bar-value"
              x={LEFT + (index + GAP / 2) * step}
              y={HEIGHT - BOTTOM - heightOf(value)}
              width={step * (1 - GAP)}
              height={heightOf(value)}
              rx={Math.min(3, step / 6)}
            />
            {index % every === 0 && (
              <text x={LEFT + (index + 0.5) * step} y={HEIGHT - 6} text-anchor="middle">
                {shownDay(day)}
              </text>
            )}
          </g>
        ))}
      </svg>
      <table class="hidden">
        <caption>{title}</caption>
        <tbody>
          {values
            .filter(({ value }) => value > 0)
            .map(({ day, value }) => (
              <tr key={day}>
                <th scope="row">{day}</th>
                <td>{shown(value)}</td>
              </tr>
            ))}
        </tbody>
      </table>
    </figure>
  )
}
