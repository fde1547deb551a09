/** What was asked and spent, by day, model and key. */
import { useState } from 'preact/hooks'
import { go, place, to } from '../address'
import { read, useLoaded } from '../api'
import { count } from '../parts/format'
import { Page } from '../parts/page'
import { Empty, Loading, Problem } from '../parts/states'
import { Chart } from './chart'
import { byDay, byName, daysOf, type Measure, total, type UsageRow } from './sums'

const DAY_MS = 86_400_000
const SPANS = ['7', '30', '90']
/** What one answer of the server holds at most. */
const MOST = 1_000

const MEASURES: Record<Measure, string> = {
  turns: 'Turns',
  input_tokens: 'Tokens in',
  output_tokens: 'Tokens out',
}

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
      if (usage.length < MOST) return rows
    }
  })
  const rows = loaded.data ?? []
  return (
    <Page
      title="Usage"
      lead="Turns and tokens as they were counted, in UTC days. A budget of a key is reckoned from the same numbers."
      actions={
        <label>
          <span class="hidden">Time</span>
          <select
            class="input"
            value={days}
            onChange={(event) => go(to(['usage'], { days: event.currentTarget.value }), { replace: true })}
          >
            {SPANS.map((each) => (
              <option key={each} value={each}>
                The last {each} days
              </option>
            ))}
          </select>
        </label>
      }
    >
      {loaded.loading && <Loading lines={6} />}
      {loaded.error && <Problem error={loaded.error} retry={loaded.reload} />}
      {loaded.data && rows.length === 0 && (
        <Empty icon="usage" title="Nothing was asked in this time">
          <p>Each question that is answered adds a turn here, with the tokens that its model reports.</p>
        </Empty>
      )}
      {rows.length > 0 && (
        <>
          <dl class="tiles">
            {(Object.keys(MEASURES) as Measure[]).map((each) => (
              <div key={each} class="tile">
                <dt>{MEASURES[each]}</dt>
                <dd>{count(total(rows, each))}</dd>
              </div>
            ))}
          </dl>
          <section class="panel-card">
            <div class="card-bar">
              <h2>By day</h2>
              <label>
                <span class="hidden">What is plotted</span>
                <select
                  class="input small"
                  value={measure}
                  onChange={(event) => setMeasure(event.currentTarget.value as Measure)}
                >
                  {(Object.keys(MEASURES) as Measure[]).map((each) => (
                    <option key={each} value={each}>
                      {MEASURES[each]}
                    </option>
                  ))}
                </select>
              </label>
            </div>
            <Chart title={`${MEASURES[measure]} by day`} values={byDay(rows, daysOf(first, last), measure)} />
          </section>
          <div class="split">
            <Shares title="By model" rows={rows} name="conversation_model_id" measure={measure} />
            <Shares title="By key" rows={rows} name="key" measure={measure} />
          </div>
        </>
      )}
    </Page>
  )
}

interface SharesProps {
  title: string
  rows: UsageRow[]
  name: 'key' | 'conversation_model_id'
  measure: Measure
}

function Shares({ title, rows, name, measure }: SharesProps) {
  const shares = byName(rows, name)
  const most = Math.max(1, ...shares.map((share) => share[measure]))
  return (
    <section class="panel-card">
      <h2>{title}</h2>
      <ul class="share">
        {shares.map((share) => (
          <li key={share.name}>
            <span>{share.name}</span>
            <strong>{count(share[measure])}</strong>
            <span class="meter" aria-hidden="true">
              <span style={{ width: `${(share[measure] / most) * 100}%` }} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}
