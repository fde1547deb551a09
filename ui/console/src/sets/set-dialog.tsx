/** The questions of a new set, or of one that changes. */
import { useState } from 'preact/hooks'
import { parseQuestions } from '../../../../scripts/parley/eval/outcomes.mjs'
import { go, to } from '../address'
import { Refusal } from '../api'
import { Dialog } from '../parts/dialog'
import { Form, TextField } from '../parts/form'
import { changeSet, type QuestionSet, readSet, writeSet } from './store'

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

export function SetDialog({ set, close }: { set?: QuestionSet; close: () => void }) {
  const [name, setName] = useState(set?.name ?? '')
  const [text, setText] = useState(set?.questions.map((each) => JSON.stringify(each)).join('\n') ?? '')
  const take = async (file: File | undefined) => {
    if (!file) return
    setText(await file.text())
    if (name === '') setName(file.name.replace(/\.\w+$/, ''))
  }
  const save = async () => {
    const questions = questionsIn(text)
    if (questions.length === 0) throw refused('there is no question in it')
    if (set) {
      await changeSet(set.name, (before) => ({ ...before, questions }))
      return close()
    }
    if (await readSet(name)) throw refused(`there is a set ${name} already`)
    await writeSet({ name, questions, runs: [] })
    go(to(['sets', name]))
  }
  return (
    <Dialog title={set ? 'Edit the questions' : 'New question set'} close={close} class="wide">
      <Form action="Save" save={save} drop={take}>
        {!set && <TextField label="Name" required value={name} change={setName} />}
        <TextField
          label="Questions"
          rows={8}
          code
          required
          placeholder={EXAMPLE}
          value={text}
          hint={
            <>
              One a line, as <code>parley eval</code> takes them: behind <code>=&gt;</code> the words that a
              right answer says, or nothing where it should be declined, and behind <code>@</code> the
              documents that answer. Lines of JSON are taken too. Paste them, drop a file here, or choose one.
            </>
          }
          change={setText}
        />
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
      </Form>
    </Dialog>
  )
}
