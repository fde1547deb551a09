/** What a run came to, question by question, alone or against an earlier one. */
import { useState } from 'preact/hooks'
import {
  comparedRuns,
  figure,
  figureName,
  type Outcome,
  placeOf,
  summaryOf,
  verdictOf,
} from '../../../../scripts/parley/eval/outcomes.mjs'
import { to } from '../address'
import { useLoaded } from '../api'
import { described } from '../chat/settings'
import { addressOf } from '../compare/side'
import { Button } from '../parts/button'
import { CheckField } from '../parts/form'
import { download, many, when } from '../parts/format'
import { Table } from '../parts/list'
import { Badges, Card, Empty, Page, Shown } from '../parts/page'
import { Prose } from '../parts/prose'
import { type Judged, readRun } from './store'

interface RunProps {
  name: string
  id: string
  /** the earlier run; '' for none */
  before: string
}

export function RunPage({ name, id, before }: RunProps) {
  const loaded = useLoaded(`run ${name} ${id} ${before}`, async () => ({
    run: await readRun(name, id),
    earlier: before === '' ? null : await readRun(name, before),
  }))
  const { run } = loaded.data ?? {}
  const earlier = loaded.data?.earlier ?? undefined
  const up = { title: name, href: to(['sets', name]) }
  if (!run) {
    return (
      <Page title="Run" up={up}>
        <Shown of={loaded}>
          {() => (
            <Empty icon="sets" title="There is no such run">
              <p>The latest 20 runs of a set are kept.</p>
            </Empty>
          )}
        </Shown>
      </Page>
    )
  }
  const { figures, questions } = comparedRuns(earlier?.outcomes ?? [], run.outcomes)
  const exported = earlier
    ? { before: earlier, now: run, ...comparedRuns(earlier.outcomes, run.outcomes) }
    : { ...run, summary: summaryOf(run.outcomes) }
  return (
    <Page
      title={earlier ? 'Two runs' : when(run.at)}
      up={up}
      lead={
        earlier ? (
          <>
            Before: {when(earlier.at)}, {described(earlier.settings)}. Now: {when(run.at)},{' '}
            {described(run.settings)}.
          </>
        ) : (
          described(run.settings)
        )
      }
      actions={
        <Button
          label="JSON"
          icon="download"
          onClick={() => download(`${name}.json`, 'application/json', JSON.stringify(exported, null, 2))}
        />
      }
    >
      <Table numbers={1} head={earlier ? ['Figure', 'Before', 'Now'] : ['Figure', 'Value']}>
        {figures.map(({ name, before, now }) => (
          <tr key={name}>
            <th scope="row">{figureName(name)}</th>
            {earlier && <td class="number-cell">{figure(name, before)}</td>}
            <td class="number-cell">{figure(name, now)}</td>
          </tr>
        ))}
      </Table>
      <Questions questions={questions} compares={earlier !== undefined} />
    </Page>
  )
}

type Questions = ReturnType<typeof comparedRuns>['questions']

function Questions({ questions, compares }: { questions: Questions; compares: boolean }) {
  const [onlyChanged, setOnlyChanged] = useState(compares)
  const shown = onlyChanged ? questions.filter(({ changes }) => changes.length > 0) : questions
  return (
    <Card
      title="Questions"
      beside={
        compares && <CheckField label="Only what changed" checked={onlyChanged} change={setOnlyChanged} />
      }
    >
      {shown.length === 0 && <p class="hint">No question came out differently.</p>}
      <ol class="outcomes">
        {shown.map(({ question, before, now, changes }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a question can come twice
          <li key={index} class="pile">
            <h3 dir="auto">{question}</h3>
            <Badges of={changes} kind="warn" />
            <div class={before ? 'split' : ''}>
              {before && <OutcomeView outcome={before} label="Before" />}
              <OutcomeView outcome={now} {...(before && { label: 'Now' })} />
            </div>
            <Links before={before} now={now} />
          </li>
        ))}
      </ol>
    </Card>
  )
}

/** A run keeps which documents an answer cites, and not where in it. One list, so that an answer is set only once. */
const NO_CITATIONS: [] = []

function OutcomeView({ outcome, label }: { outcome: Outcome & { judged?: Judged }; label?: string }) {
  const { answer, error, warned, rank, tokens, dollars, ms, cited, found, judged } = outcome
  const verdict = verdictOf(outcome)
  const good = ['right', 'declined rightly', 'answered'].includes(verdict)
  return (
    <div class="answer-side pile">
      {label && <h4 class="aside">{label}</h4>}
      {error !== undefined && <p class="bad">{error}</p>}
      {error === undefined &&
        (answer ? <Prose answer={answer} citations={NO_CITATIONS} /> : <p>No answer.</p>)}
      <p class="line">
        <span class={good ? 'badge good' : 'badge warn'}>{verdict}</span>
        {judged && (
          <span class={judged.verdict === 'right' ? 'badge good' : 'badge warn'}>
            the judge: {judged.verdict}
          </span>
        )}
        {warned && <span class="badge warn">with a warning</span>}
        {rank !== undefined && (
          <span class={rank > 0 ? 'badge' : 'badge warn'}>expected document: {placeOf(rank)}</span>
        )}
      </p>
      {judged?.reason && <p class="soft">{judged.reason}</p>}
      <p class="soft">
        {cited.length > 0 ? `Cites ${cited.join(', ')}` : 'Cites nothing'} · {many(found.length, 'document')}{' '}
        found
        {tokens !== undefined && ` · ${many(tokens, 'token')}`}
        {dollars ? ` · ${figure('dollars', dollars)}` : ''} · {figure('ms', ms)}
      </p>
    </div>
  )
}

const addressIn = ({ conversation_id: conversation, turn }: Outcome): string | undefined =>
  conversation === undefined || turn === undefined ? undefined : addressOf({ conversation, turn })

/** Why an answer is what it is, or why both are. */
function Links({ before, now }: { before: Outcome | undefined; now: Outcome }) {
  const [first, second] = [before && addressIn(before), addressIn(now)].filter((each) => each !== undefined)
  if (first === undefined) return null
  return (
    <a href={to(['compare'], { a: first, b: second })}>
      {second === undefined ? 'Why this answer?' : 'Why these answers?'}
    </a>
  )
}
