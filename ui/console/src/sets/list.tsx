/** The list of question sets, and a new one. */
import { useState } from 'preact/hooks'
import { parseQuestions } from '../../../../scripts/parley/eval/outcomes.mjs'
import { go, place, to } from '../address'
import { useLoaded } from '../api'
import { Confirm, Dialog } from '../parts/dialog'
import { ago, many } from '../parts/format'
import { Icon } from '../parts/icon'
import { Item, ListPage } from '../parts/list-page'
import { deleteSet, listSets, type QuestionSet, readSet, writeSet } from './store'

export function SetList() {
  const list = useLoaded('sets', listSets)
  const [removing, setRemoving] = useState<QuestionSet>()
  return (
    <ListPage
      title="Question sets"
      lead="Questions whose answers you know. Run them before and after a change, and see what it did. Sets and runs are kept in this browser."
      list={list}
      empty={{
        icon: 'sets',
        title: 'No question sets yet',
        text: 'Write ten questions that your visitors ask, and the documents that answer them.',
      }}
      action={
        <a class="button primary" href={to(['sets'], { new: '1' })}>
          <Icon name="plus" />
          New set
        </a>
      }
      item={(set) => (
        <Item
          key={set.name}
          name={set.name}
          href={to(['sets', set.name])}
          about={
            <>
              {many(set.questions.length, 'question')} · {many(set.runs.length, 'run')}
              {set.runs[0] && ` · last run ${ago(set.runs[0].at)}`}
            </>
          }
          called={`the set ${set.name}`}
          remove={() => setRemoving(set)}
        />
      )}
    >
      {place.value.query.has('new') && <NewSet close={() => go(to(['sets']), { replace: true })} />}
      {removing && (
        <Confirm
          title={`Delete ${removing.name}?`}
          action="Delete the set"
          run={async () => {
            await deleteSet(removing.name)
            list.reload()
          }}
          close={() => setRemoving(undefined)}
        >
          <p>Its questions and runs are deleted. The conversations of its runs stay.</p>
        </Confirm>
      )}
    </ListPage>
  )
}

const EXAMPLE = `How long was the reef filmed? => five years @ guide/reef.md
What is the capital of France? =>`

function NewSet({ close }: { close: () => void }) {
  const [name, setName] = useState('')
  const [text, setText] = useState('')
  const [fault, setFault] = useState('')
  const take = async (file: File | undefined) => {
    if (!file) return
    setText(await file.text())
    if (name === '') setName(file.name.replace(/\.\w+$/, ''))
  }
  const submit = async (event: Event) => {
    event.preventDefault()
    try {
      const questions = parseQuestions(text)
      if (questions.length === 0) throw new Error('there is no question in it')
      if (await readSet(name)) throw new Error(`there is a set ${name} already`)
      await writeSet({ name, questions, runs: [] })
      go(to(['sets', name]))
    } catch (error) {
      setFault(`This set cannot be kept: ${(error as Error).message}.`)
    }
  }
  return (
    <Dialog title="New question set" close={close} class="wide">
      <form
        class="dialog-body form"
        autocomplete="off"
        onSubmit={submit}
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          event.preventDefault()
          take(event.dataTransfer?.files[0])
        }}
      >
        <div>
          <label class="field-label" for="set-name">
            Name
          </label>
          <input
            id="set-name"
            class="input"
            required
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </div>
        <div>
          <label class="field-label" for="set-questions">
            Questions
          </label>
          <textarea
            id="set-questions"
            class="input code"
            rows={8}
            required
            spellcheck={false}
            placeholder={EXAMPLE}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          <p class="hint">
            One a line, as <code>parley eval</code> takes them: behind <code>=&gt;</code> the words that a
            right answer says, or nothing where it should be declined, and behind <code>@</code> the documents
            that answer. Lines of JSON are taken too. Paste them, drop a file here, or choose one.
          </p>
        </div>
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
        {fault !== '' && (
          <p class="bad" role="alert">
            {fault}
          </p>
        )}
        <div class="dialog-foot">
          <button type="submit" class="button primary">
            Save
          </button>
        </div>
      </form>
    </Dialog>
  )
}
