/** Question sets: the list, one with its runs, and what a run came to beside another. */

import { useEffect, useState } from 'preact/hooks'
import { figure, figureName, parseQuestions, summaryOf } from '../../../../scripts/parley/eval/outcomes.mjs'
import { mapFew } from '../../../../src/lib/few'
import { go, place, to } from '../address'
import { Refusal, useAction, useKept, useLoaded } from '../api'
import { loadChoices } from '../chat/choices'
import { type ChatSettings, described, SettingsFields, settings } from '../chat/settings'
import { Button } from '../parts/button'
import { CheckField, FormDialog, useDraft } from '../parts/form'
import { ago, many, when } from '../parts/format'
import { ListPage, Table } from '../parts/list'
import { Card, Empty, Page, Problem, Shown } from '../parts/page'
import { RunPage } from './run'
import { Progress, Schedule } from './schedule'
import {
  changeSet,
  kept,
  listSets,
  pathOf,
  type QuestionSet,
  type Run,
  readRun,
  readSet,
  running,
  runSet,
  settingsOf,
  stopRun,
  waitFor,
  writeSet,
} from './store'

export default function Sets() {
  const { rest, query } = place.value
  const [name, run] = rest
  if (name === undefined) return <SetList />
  if (run === undefined) return <SetPage key={name} name={name} />
  return <RunPage key={`${name}/${run}`} name={name} id={run} before={query.get('before') ?? ''} />
}

function SetList() {
  const list = useLoaded('sets', listSets)
  return (
    <ListPage
      title="Question sets"
      lead="Questions whose answers you know. Run them before and after a change, and see what it did."
      list={list}
      empty={{
        icon: 'sets',
        title: 'No question sets yet',
        text: 'Write ten questions that your visitors ask, and the documents that answer them.',
      }}
      kind="set"
      form={(close) => <SetDialog close={close} />}
      item={({ name, questions, runs }) => ({
        name,
        href: to(['sets', name]),
        about: [
          many(questions.length, 'question'),
          many(runs.length, 'run'),
          ...(runs[0] ? [`last run ${ago(runs[0].started_at)}`] : []),
        ].join(' · '),
        path: pathOf(name),
        says: 'Its questions and runs are deleted. The conversations of its runs stay.',
      })}
    />
  )
}

// =============================================================================
// A question set: its questions, a new run, and the runs so far.

function SetPage({ name }: { name: string }) {
  // The page keeps what it shows while a run adds to it.
  const set = useKept(useLoaded(`set ${name} ${kept.value}`, () => readSet(name)))
  const [editing, setEditing] = useState(false)
  return (
    <Page
      title={name}
      up={{ title: 'Question sets', href: to(['sets']) }}
      lead={set.data && many(set.data.questions.length, 'question')}
      actions={set.data && <Button label="Edit" icon="edit" onClick={() => setEditing(true)} />}
    >
      {editing && set.data && (
        <SetDialog
          set={set.data}
          close={() => {
            setEditing(false)
            set.reload()
          }}
        />
      )}
      <Shown of={set}>
        {(found) =>
          found ? (
            <>
              <NewRun set={found} />
              <Schedule set={found} changed={set.reload} />
              <Runs set={found} />
              <Questions of={found} />
            </>
          ) : (
            <Empty icon="sets" title="There is no such set">
              <p>It may have been deleted.</p>
              <Button label="All sets" href={to(['sets'])} />
            </Empty>
          )
        }
      </Shown>
    </Page>
  )
}

const Questions = ({ of: { questions } }: { of: QuestionSet }) => (
  <Card title="Questions">
    <ol class="set-questions">
      {questions.map(({ question, relevant, answer = [], unanswerable }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a question can come twice
        <li key={index} class="pile">
          <span dir="auto">{question}</span>
          <span class="soft">
            {unanswerable
              ? 'should be declined'
              : [[answer].flat().join(' or '), relevant?.join(', ')].filter(Boolean).join(' · ') ||
                'nothing is expected'}
          </span>
        </li>
      ))}
    </ol>
  </Card>
)

function NewRun({ set }: { set: QuestionSet }) {
  const choices = useLoaded('choices', loadChoices)
  const asked = useDraft<ChatSettings>(() => (set.asks ? settingsOf(set.asks) : settings.peek()))
  // One that goes on already, by itself or from another page, is waited for.
  useEffect(() => {
    if (set.running !== undefined) waitFor(set.name, set.running).catch(() => {})
  }, [set.name, set.running])
  const now = running.value
  const { error, start } = useAction((_: Event) => runSet(set, asked.draft))
  return (
    <Card title="Run it">
      <form class="form" autocomplete="off" onSubmit={start}>
        <div class="split">
          <SettingsFields choices={choices.data ?? {}} of={asked} />
        </div>
        {error && <Problem error={error} />}
        {now && (
          <div class="line">
            <progress value={now.done} max={now.of} aria-label="Questions asked" />
            <span role="status">
              {now.set === set.name
                ? `${now.done} of ${many(now.of, 'question')}`
                : `A run of ${now.set} goes on: ${now.done} of ${now.of}`}
            </span>
            <Button label="Stop" onClick={stopRun} />
          </div>
        )}
        {!now && (
          <div>
            <Button label={`Ask ${many(set.questions.length, 'question')}`} kind="primary" type="submit" />
          </div>
        )}
      </form>
    </Card>
  )
}

/** The figures of a run that the list has room for. */
const FIGURES = ['right', 'partly', 'wrong', 'declined_rightly', 'declined_wrongly', 'first_3']

function Runs({ set }: { set: QuestionSet }) {
  const ids = set.runs.map(({ id }) => id)
  const loaded = useKept(
    useLoaded(`runs ${set.name} ${ids.join()} ${kept.value}`, async () => {
      const all = await mapFew(ids, 4, (id) => readRun(set.name, id))
      return all.filter((run): run is Run => run !== null)
    }),
  )
  if (ids.length === 0) return null
  return <Shown of={loaded}>{(runs) => <RunTable name={set.name} runs={runs} />}</Shown>
}

function RunTable({ name, runs }: { name: string; runs: Run[] }) {
  const [picked, setPicked] = useState<string[]>([])
  const pick = (id: string, on: boolean) =>
    setPicked((before) => (on ? [...before, id].slice(-2) : before.filter((each) => each !== id)))
  // The later one is shown, against the earlier.
  const [now, before] = runs.filter(({ id }) => picked.includes(id))
  return (
    <Card
      title="Runs"
      beside={
        now && before ? (
          <Button label="Compare the two" href={to(['sets', name, now.id], { before: before.id })} />
        ) : (
          runs.length > 1 && <span class="soft">Tick two to compare them.</span>
        )
      }
    >
      {runs.length > 1 && <Progress runs={runs} />}
      <Table
        numbers={2}
        head={[
          <span key="compare" class="hidden">
            Compare
          </span>,
          'Run',
          ...FIGURES.map((each) => figureName(each)),
        ]}
      >
        {runs.map(({ id, at, settings: asked, outcomes }) => {
          const figures = summaryOf(outcomes)
          return (
            <tr key={id}>
              <td>
                <CheckField
                  label={`Compare the run of ${when(at)}`}
                  bare
                  checked={picked.includes(id)}
                  change={(on) => pick(id, on)}
                />
              </td>
              <th scope="row">
                <a href={to(['sets', name, id])}>{when(at)}</a>
                <p class="soft">{described(asked)}</p>
              </th>
              {FIGURES.map((each) => (
                <td key={each} class="number-cell">
                  {figure(each, figures[each])}
                </td>
              ))}
            </tr>
          )
        })}
      </Table>
    </Card>
  )
}

const EXAMPLE = `How long was the reef filmed? => five years @ guide/reef.md
What is the capital of France? =>`

const refused = (why: string) => new Refusal(0, `This set cannot be kept: ${why}.`)

function questionsIn(text: string) {
  try {
    return parseQuestions(text)
  } catch (error) {
    throw refused((error as Error).message)
  }
}

/** The questions of a new set, or of one that changes. */
function SetDialog({ set, close }: { set?: QuestionSet; close: () => void }) {
  const {
    draft,
    set: change,
    text,
  } = useDraft({
    name: set?.name ?? '',
    lines: set?.questions.map((each) => JSON.stringify(each)).join('\n') ?? '',
  })
  const { name, lines } = draft
  const take = async (file: File | undefined) => {
    if (!file) return
    change({ lines: await file.text(), name: name || file.name.replace(/\.\w+$/, '') })
  }
  const save = async () => {
    const questions = questionsIn(lines)
    if (questions.length === 0) throw refused('there is no question in it')
    if (set) return changeSet(set.name, (before) => ({ ...before, questions }))
    if (await readSet(name)) throw refused(`there is a set ${name} already`)
    await writeSet({ name, questions, runs: [] })
    go(to(['sets', name]))
  }
  return (
    <FormDialog
      title={set ? 'Edit the questions' : 'New question set'}
      close={close}
      save={save}
      drop={take}
      wide
    >
      {!set && text('name', 'Name', { required: true })}
      {text('lines', 'Questions', {
        rows: 8,
        code: true,
        required: true,
        placeholder: EXAMPLE,
        hint: (
          <>
            One a line, as <code>parley eval</code> takes them: behind <code>=&gt;</code> the words that a
            right answer says, or nothing where it should be declined, and behind <code>@</code> the documents
            that answer. Lines of JSON are taken too. Paste them, drop a file here, or choose one.
          </>
        ),
      })}
      <div>
        <label class="field-label" for="set-file">
          From a file
        </label>
        <input
          id="set-file"
          type="file"
          accept=".jsonl,.ndjson,.json,.txt"
          onChange={(event) => take(event.currentTarget.files?.[0])}
        />
      </div>
    </FormDialog>
  )
}
