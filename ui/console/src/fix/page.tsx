/** An answer that is not right: the document that should have answered, what to change, the new answer beside it, and the question kept. */
import { useState } from 'preact/hooks'
import { go, place, to } from '../address'
import { read, useKept, useLoaded, useRead } from '../api'
import { askedWith, type Choices, loadChoices } from '../chat/choices'
import { type ChatSettings, described, settings } from '../chat/settings'
import { refOf } from '../chat/titles'
import { passagesOf } from '../chat/why'
import { DocumentDialog } from '../collections/documents'
import { searchParams } from '../collections/query'
import { Result } from '../collections/search'
import { type Collection, type Doc, pathOf, type SearchResult } from '../collections/wire'
import { Answer, useSide } from '../compare/page'
import { addressOf, alone, askAgain, parseAddress, readSide, type Side } from '../compare/side'
import { faultsOf } from '../conversations/record'
import { Said } from '../conversations/said'
import { Button } from '../parts/button'
import { Form, optionsOf, SearchBox, SelectField, useDraft, useTyped } from '../parts/form'
import { List } from '../parts/list'
import { Act, Badges, NotFound, Page, Shown, Step } from '../parts/page'
import { Prose } from '../parts/prose'
import { asksOf, changeSet, listSets, readSet, TESTER, writeSet } from '../sets/store'
import { type Change, Done, rulesKnown, Ways } from './change'

export default function Fix() {
  const { query } = place.value
  const a = parseAddress(query.get('a'))
  const loaded = useLoaded(a && `fix ${addressOf(a)}`, async (signal) => {
    const [side, choices] = await Promise.all([readSide(a!, signal), loadChoices(signal)])
    return { side, choices }
  })
  if (!a) return <NotFound />
  return (
    <Page
      title="Fix this answer"
      up={{ title: 'The conversation', href: to(['conversations', 'read', a.conversation]) }}
      lead="Find the document that should have answered, change what kept it from doing so, and ask again."
    >
      <Shown of={loaded}>{(all) => <Steps key={addressOf(a)} {...all} />}</Shown>
    </Page>
  )
}

/** The collections that settings search. */
const searchedBy = ({ assistant, collection, searches }: ChatSettings, { assistants }: Choices): string[] => {
  const told = assistants?.find(({ name }) => name === assistant)
  const ran = told?.searches ?? searches ?? []
  const names = ran.length > 0 ? ran.map((each) => each.collection) : (told?.collections ?? [collection])
  return [...new Set(names)]
}

function Steps({ side, choices }: { side: Side; choices: Choices }) {
  const { turn, traced } = side
  const [asked] = useState(
    () => askedWith({ ...side.asked, turns: [turn] }, traced?.trace, choices, settings.peek()).settings,
  )
  const names = searchedBy(asked, choices)
  const [name, setName] = useState(names[0]!)
  const collection = useRead<Collection>(pathOf(name))
  const [picked, pick] = useState<Doc>()
  const [changes, setChanges] = useState<Change[]>([])
  const question = alone(side)
  const choose = (other: string) => {
    setName(other)
    pick(undefined)
  }
  const isAsked = place.value.query.has('b')
  return (
    <ol class="steps wide">
      <Step title="The answer">
        <Badges of={faultsOf(turn)} kind="warn" />
        {/* Once there is a new answer, it stands beside that one. */}
        <details open={!isAsked} class="weights">
          <summary>What was answered, and what the model read</summary>
          <div class="split">
            <Answer side={side} brief />
          </div>
        </details>
        <Said feedback={turn.feedback} />
      </Step>
      <Step title="The document that should have answered" done={picked !== undefined}>
        {names.length > 1 && (
          <SelectField label="Collection" value={name} options={optionsOf(names)} change={choose} />
        )}
        <Shown of={collection}>
          {(found) => (
            <Find
              key={name}
              collection={found}
              side={side}
              question={question}
              picked={picked}
              pick={pick}
              counted={changes.length}
            />
          )}
        </Shown>
      </Step>
      <Step title="What to change" done={changes.length > 0}>
        <Shown of={collection}>
          {(found) => (
            <Ways
              collection={found}
              question={question}
              document={picked}
              writes={place.peek().query.has('write')}
              changed={(change) => setChanges((before) => [...before, change])}
              edited={(now) => pick((before) => (before?.id === now.id ? now : before))}
            />
          )}
        </Shown>
        <ul class="faults pile" aria-label="What you changed" hidden={changes.length === 0}>
          {changes.map((each) => (
            <Done
              key={each}
              change={each}
              undone={() => setChanges((all) => all.filter((other) => other !== each))}
            />
          ))}
        </ul>
      </Step>
      <Step title="Ask again" done={isAsked}>
        <Again side={side} asked={asked} />
      </Step>
      <Step title="Keep the question">
        <Keep asked={asked} key={picked?.id} question={question} source={picked?.id ?? ''} />
      </Step>
    </ol>
  )
}

const PARTS = {
  cited: 'The answer cites it',
  read: 'The model read it, and did not cite it',
  left: 'Found, but the prompt was full',
}

/** How many hits there is room for. */
const MOST = 6

/** A search as the turn's own was, so that it finds what the model would read. What narrowed that one is left out. */
function searched(collection: Collection, { traced }: Side, q: string): URLSearchParams {
  const usual = searchParams(collection, { q, filter: '', by: 'both', weights: new Map(), alpha: '' })
  const ran = traced?.trace.searches.find((each) => each.collection === collection.name)?.params ?? {}
  const params = new URLSearchParams({
    ...Object.fromEntries(usual),
    ...ran,
    q: q || '*',
    per_page: String(MOST),
  })
  for (const name of ['filter_by', 'facet_by']) params.delete(name)
  return params
}

interface FindProps {
  collection: Collection
  side: Side
  question: string
  picked: Doc | undefined
  pick: (document: Doc) => void
  /** how much was changed so far: another change may find other documents */
  counted: number
}

/** A search for the document that should have answered. It begins with the question. */
function Find({ collection, side, question, picked, pick, counted }: FindProps) {
  const { turn, traced } = side
  const [q, setQ] = useState(question)
  const [text, setText] = useTyped(q, setQ)
  const [shown, setShown] = useState<Doc>()
  const { name } = collection
  const params = searched(collection, side, q)
  const loaded = useKept(
    useLoaded(`search ${name} ${params} ${counted}`, (signal) =>
      read<SearchResult>(`${pathOf(name)}/documents/search?${params}`, signal),
    ),
  )
  const parts = passagesOf({
    searches: traced?.trace.searches.map(({ error: _, ...search }) => search) ?? [],
    cut: traced?.trace.cut ?? [],
    answer: turn.answer,
    citations: turn.citations,
  })
  const partOf = (id: string) =>
    parts.find((each) => refOf(each) === refOf({ collection: name, document_id: id }))?.part
  return (
    <>
      <SearchBox label={`Search ${name}`} value={text} change={setText} />
      <List
        of={{ ...loaded, data: loaded.error ? undefined : loaded.data?.hits }}
        label="Searching"
        class="results apart"
        ordered
        empty={{
          icon: 'search',
          title: 'Nothing was found',
          text: 'Try other words. Where no document answers, write a page below.',
        }}
        item={(hit) => {
          const { document } = hit
          const part = partOf(document.id)
          const isPicked = picked?.id === document.id
          return (
            <Result key={document.id} hit={hit} best={loaded.data?.hits[0]} open={setShown}>
              <p class="result-pick line apart">
                <Button
                  label={isPicked ? 'Chosen' : 'This should have answered'}
                  aria-pressed={isPicked}
                  {...(isPicked && { icon: 'check' as const })}
                  onClick={() => pick(document)}
                />
                <span class="soft">{part ? PARTS[part] : traced && 'The model did not have it'}</span>
              </p>
            </Result>
          )
        }}
      />
      {shown && <DocumentDialog collection={name} document={shown} close={() => setShown(undefined)} />}
    </>
  )
}

const NAMES = ['Before', 'Now'] as const

/** The question asked once more, and both answers side by side. */
function Again({ side, asked }: { side: Side; asked: ChatSettings }) {
  const b = parseAddress(place.value.query.get('b'))
  const right = useKept(useSide(b))
  const again = async () => {
    await rulesKnown()
    const b = await askAgain(side, asked, TESTER)
    go(to(['fix'], { a: addressOf(side.at), b }), { replace: true })
  }
  return (
    <>
      <p class="hint">
        “{alone(side)}” is asked by itself, of {described(asked)}. It counts as a test, not as a visitor’s
        question.
      </p>
      <div>
        <Act label="Ask again" busy="Asking …" kind="primary" run={again} />
      </div>
      {b && (
        <Shown of={right}>
          {(now) => (
            <>
              <div class="split">
                {[side, now].map((each, at) => (
                  <section
                    key={NAMES[at]}
                    class="answer-side pile"
                    aria-label={`The answer ${NAMES[at]?.toLowerCase()}`}
                  >
                    <h3>{NAMES[at]}</h3>
                    <Badges of={faultsOf(each.turn)} kind="warn" />
                    <Prose answer={each.turn.answer} citations={each.turn.citations} />
                  </section>
                ))}
              </div>
              <p class="hint" role="status">
                The new answer stands beside the old one.{' '}
                <a href={to(['compare'], { a: addressOf(side.at), b: addressOf(now.at) })}>
                  Compare what they found, cost and were asked
                </a>
              </p>
            </>
          )}
        </Shown>
      )}
    </>
  )
}

/** Puts the question into a set, with what a right answer is known by. */
function Keep({ asked, question, source }: { asked: ChatSettings; question: string; source: string }) {
  const sets = useLoaded('sets', listSets)
  const { draft, text } = useDraft({ name: '', source, words: '' })
  const [kept, setKept] = useState('')
  const save = async () => {
    const relevant = draft.source.split(',').flatMap((id) => id.trim() || [])
    const entry = {
      question,
      ...(relevant.length > 0 && { relevant }),
      ...(draft.words && { answer: draft.words }),
    }
    if (await readSet(draft.name))
      await changeSet(draft.name, (set) => ({ ...set, questions: [...set.questions, entry] }))
    else await writeSet({ name: draft.name, questions: [entry], asks: asksOf(asked), runs: [] })
    setKept(draft.name)
  }
  return (
    <Form class="form" action="Keep in a question set" save={save}>
      <div class="split">
        {text('name', 'Question set', {
          required: true,
          options: sets.data?.map(({ name }) => name),
          hint: 'One that is there, or the name of a new one.',
        })}
        {text('source', 'Document that answers', { hint: 'Its id.' })}
        {text('words', 'Words that a right answer says')}
      </div>
      {kept !== '' && (
        <p role="status">
          The question is in <a href={to(['sets', kept])}>{kept}</a>. Run the set after each change.
        </p>
      )}
    </Form>
  )
}
