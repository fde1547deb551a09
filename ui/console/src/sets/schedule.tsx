/** When a set is asked by itself, who judges its answers, and how its runs came out over time. */

import { summaryOf } from '../../../../scripts/parley/eval/outcomes.mjs'
import { useLoaded } from '../api'
import { loadChoices } from '../chat/choices'
import { Form, optionsOf, useDraft } from '../parts/form'
import { count, when } from '../parts/format'
import { Card } from '../parts/page'
import { changeSet, type QuestionSet, type Run } from './store'

const EVERY: Record<string, string> = {
  '': 'Only when I ask',
  '1': 'Every hour',
  '24': 'Every day',
  '168': 'Every week',
}

export function Schedule({ set, changed }: { set: QuestionSet; changed: () => void }) {
  const choices = useLoaded('choices', loadChoices)
  const { draft, choice, check } = useDraft({
    every: set.every_hours === undefined ? '' : String(set.every_hours),
    after: set.after_import ?? false,
    judge: set.judge ?? '',
  })
  const save = async () => {
    await changeSet(set.name, ({ every_hours: _, after_import: __, judge: ___, ...rest }) => ({
      ...rest,
      ...(draft.every !== '' && { every_hours: Number(draft.every) }),
      ...(draft.after && { after_import: true }),
      ...(draft.judge !== '' && { judge: draft.judge }),
    }))
    changed()
  }
  const every = draft.every in EVERY ? EVERY : { ...EVERY, [draft.every]: `Every ${draft.every} hours` }
  const models = choices.data?.models?.map(({ id }) => id) ?? []
  return (
    <Card title="Ask it by itself">
      <Form class="form" save={save}>
        <div class="split">
          {choice('every', 'How often', Object.entries(every))}
          {choice('judge', 'Judge', [['', 'Words and sources alone'], ...optionsOf(models)], {
            hint: 'A language model that grades each answer beside what its words say. It costs a call for each question.',
          })}
        </div>
        {check('after', 'After each import into one of its collections')}
      </Form>
    </Card>
  )
}

const WIDTH = 12
const HEIGHT = 96
const PARTS = [
  ['right', 'accent'],
  ['declined_rightly', 'accent'],
  ['partly', 'warn'],
  ['wrong', 'bad'],
  ['declined_wrongly', 'bad'],
] as const

/** A bar a run, the oldest first: what was right from below, what was wrong from above. The table says the same. */
export function Progress({ runs }: { runs: Run[] }) {
  const bars = runs.toReversed()
  return (
    <figure class="figure">
      <svg
        class="run-bars"
        preserveAspectRatio="xMinYMid meet"
        viewBox={`0 0 ${bars.length * WIDTH * 2} ${HEIGHT}`}
        style={{ maxWidth: `${bars.length * WIDTH * 4}px` }}
        aria-hidden="true"
      >
        {bars.map(({ id, at, outcomes }, index) => {
          const figures = summaryOf(outcomes)
          const total = Math.max(1, outcomes.length)
          let below = 0
          const said = PARTS.map(([name]) => `${name.replace('_', ' ')} ${count(figures[name] ?? 0)}`).join(
            ', ',
          )
          return (
            <g key={id}>
              <title>{`${when(at)}: ${said}`}</title>
              {PARTS.map(([name, colour]) => {
                const height = ((figures[name] ?? 0) / total) * HEIGHT
                below += height
                return (
                  <rect
                    key={name}
                    style={{ fill: `var(--${colour})` }}
                    x={(index + 0.25) * WIDTH * 2}
                    y={HEIGHT - below}
                    width={WIDTH}
                    height={height}
                  />
                )
              })}
            </g>
          )
        })}
      </svg>
      <figcaption class="soft">
        Runs from the oldest to the latest: right below, partly right, wrong above.
      </figcaption>
    </figure>
  )
}
