/** The same question asked with other settings: both answers, and why each is what it is, side by side. */
import { sourcesCited } from '../../../widget/src/sources'
import { go, NEW, place, to, toConversation } from '../address'
import { useLoaded } from '../api'
import { loadChoices } from '../chat/choices'
import { type ChatSettings, SettingsFields, settings } from '../chat/settings'
import { citedIn, useTitles } from '../chat/titles'
import { Why } from '../chat/why'
import { Button } from '../parts/button'
import { Form, useDraft } from '../parts/form'
import { Table } from '../parts/list'
import { Empty, Page, Shown } from '../parts/page'
import { Prose } from '../parts/prose'
import {
  addressOf,
  alone,
  askAgain,
  differences,
  foundBy,
  parseAddress,
  readSide,
  type Side,
  type TurnAddress,
} from './side'

export default function Compare() {
  const { query } = place.value
  const a = parseAddress(query.get('a'))
  const b = parseAddress(query.get('b'))
  const left = useSide(a)
  const right = useSide(b)
  const sides = [left.data, right.data].filter((side) => side !== undefined)
  const title = useTitles(sides.flatMap((side) => [...foundBy(side), ...citedIn(side.turn.citations)]))
  if (!a) {
    return (
      <Page title="Two answers">
        <Empty icon="compare" title="No answer is chosen">
          <p>Ask a question, press “Compare” below its answer, and change a setting.</p>
          <Button label="Ask a question" kind="primary" href={NEW} />
        </Empty>
      </Page>
    )
  }
  return (
    <Page
      title={left.data ? alone(left.data) : 'Two answers'}
      up={{ title: 'The conversation', href: toConversation(a.conversation) }}
      lead="The same question with other settings. It is asked by itself, without what was said before."
    >
      {left.data && right.data && <Differences rows={differences(left.data, right.data, title)} />}
      <div class="split">
        <section class="answer-side pile" aria-label="The first answer">
          <h2 class="aside">First</h2>
          <Shown of={left}>{(side) => <Answer side={side} />}</Shown>
        </section>
        <section class="answer-side pile" aria-label="The second answer">
          <h2 class="aside">Second</h2>
          {left.data && <Again key={query.get('b')} from={left.data} a={a} open={b === undefined} />}
          {b && <Shown of={right}>{(side) => <Answer side={side} />}</Shown>}
        </section>
      </div>
    </Page>
  )
}

export const useSide = (at: TurnAddress | undefined) =>
  useLoaded(at && `side ${addressOf(at)}`, (signal) => readSide(at!, signal))

/** @param brief without its cost, prompt and scores */
export function Answer({ side: { turn, traced }, brief }: { side: Side; brief?: boolean }) {
  return (
    <>
      <Prose answer={turn.answer} citations={turn.citations} />
      <div class="why">
        {traced ? (
          <Why turn={turn} shown={sourcesCited(turn.citations, {})} traced={traced} brief={brief} />
        ) : (
          <p class="hint">Your API key may not see why: it lacks the action conversations:trace.</p>
        )}
      </div>
    </>
  )
}

/** Asks the question of the first answer again. */
function Again({ from, a, open }: { from: Side; a: TurnAddress; open: boolean }) {
  const choices = useLoaded('choices', loadChoices)
  const asked = useDraft<ChatSettings>(settings.peek())
  const ask = async () => {
    const b = await askAgain(from, asked.draft)
    go(to(['compare'], { a: addressOf(a), b }), { replace: true })
  }
  return (
    <details class="again frame" open={open}>
      <summary>Settings of the second answer</summary>
      <Form class="form apart" action="Ask again" busy="Asking …" save={ask}>
        <SettingsFields choices={choices.data ?? {}} of={asked} />
        <p class="hint">
          Instructions and temperature belong to a model. To compare those, make{' '}
          <a href={to(['models'])}>another model</a>.
        </p>
      </Form>
    </details>
  )
}

function Differences({ rows }: { rows: ReturnType<typeof differences> }) {
  if (rows.length === 0) return <p class="hint">Both answers cost and found the same.</p>
  return (
    <Table class="halves" head={['What differs', 'First', 'Second']}>
      {rows.map(({ name, left, right }) => (
        <tr key={name}>
          <th scope="row">{name}</th>
          <td>{left || '–'}</td>
          <td>{right || '–'}</td>
        </tr>
      ))}
    </Table>
  )
}
