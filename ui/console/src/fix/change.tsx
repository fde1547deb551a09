/** What can be changed so that a question is answered: its document, a synonym, a pin or a new document. Each can be taken back. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { send } from '../api'
import { TITLES, titleOf } from '../chat/insight'
import { changeDocument, DocumentForm, EditDocument, pathOfDocument } from '../collections/documents'
import { type Collection, type Doc, type Field, pathOf } from '../collections/wire'
import { Form, useDraft } from '../parts/form'
import { Act } from '../parts/page'

export interface Change {
  says: string
  undo: () => Promise<unknown>
}

interface WaysProps {
  collection: Collection
  question: string
  /** the document that should have answered; undefined while none is chosen */
  document: Doc | undefined
  /** whether a new document is to be written at once */
  writes: boolean
  changed: (change: Change) => void
  /** the document is another one now */
  edited: (document: Doc) => void
}

export function Ways({ collection, question, document, writes, changed, edited }: WaysProps) {
  const { name } = collection
  const [open, setOpen] = useState<'edit' | 'write' | undefined>(writes ? 'write' : undefined)
  const close = () => setOpen(undefined)
  const saved = (now: Doc) => {
    if (!document) return
    const undo = () => changeDocument(name, now, document).then(() => edited(document))
    changed({ says: `Edited “${titleOf(document)}”.`, undo })
    edited(now)
    close()
  }
  const write = async (properties: Record<string, unknown>) => {
    const made = await send<Doc>('POST', `${pathOf(name)}/documents`, properties)
    const undo = () => send('DELETE', pathOfDocument(name, made.id))
    changed({ says: `Wrote “${titleOf(made)}” into ${name}.`, undo })
    close()
  }
  return (
    <div class="split">
      <Way title="Edit the document" action="Edit" waits={!document} save={async () => setOpen('edit')}>
        <p class="hint">
          Every question that finds it reads the new text. A later import or reading of its source that finds
          the page changed replaces it: change it there, too.
        </p>
      </Way>
      <Way title="Write a page" action="Write" save={async () => setOpen('write')}>
        <p class="hint">
          For a question that no document answers: a new document in {name}, with the question as its title.
          Imports leave it alone.
        </p>
      </Way>
      <Synonym key={document?.id} name={name} question={question} document={document} changed={changed} />
      <Pin name={name} question={question} document={document} changed={changed} />
      {open === 'edit' && document && (
        <EditDocument collection={name} document={document} saved={saved} close={close} />
      )}
      {open === 'write' && (
        <DocumentForm title="Write a page" {...answering(collection, question)} save={write} close={close} />
      )}
    </div>
  )
}

interface WayProps {
  title: string
  action: string
  /** whether a document has to be chosen first */
  waits?: boolean
  save: () => Promise<unknown>
  children: ComponentChildren
}

const Way = ({ title, action, waits = false, save, children }: WayProps) => (
  <section>
    <h3>{title}</h3>
    <Form class="form" action={action} disabled={waits} save={save}>
      {children}
      {waits && <p class="hint">Choose a document above first.</p>}
    </Form>
  </section>
)

interface RuleProps extends Pick<WaysProps, 'question' | 'document' | 'changed'> {
  /** of the collection */
  name: string
}

function Synonym({ name, question, document, changed }: RuleProps) {
  const own = wordsOf(question)
  const theirs = document ? wordsOf(JSON.stringify(Object.values(document))) : []
  const [lacking = ''] = own
    .filter((word) => document && !theirs.includes(word))
    .sort((a, b) => b.length - a.length)
  const { draft, text } = useDraft({ from: lacking, to: '' })
  const save = async () => {
    const synonyms = [draft.from, draft.to]
    const says = `“${draft.from}” and “${draft.to}” find each other in ${name}.`
    changed(await writeRule(`${pathOf(name)}/synonyms`, synonyms.join('-'), { synonyms }, says))
  }
  return (
    <Way title="Add a synonym" action="Add the synonym" save={save}>
      <p class="hint">
        For a question in other words than the document’s: every search of {name} for one word finds the
        other, too.
      </p>
      {text('from', 'Word of the question', { required: true, options: own })}
      {text('to', 'Word of the document', { required: true, options: theirs.slice(0, MOST_WORDS) })}
    </Way>
  )
}

function Pin({ name, question, document, changed }: RuleProps) {
  const { draft, text } = useDraft({ words: question })
  const title = document ? `“${titleOf(document)}”` : 'the document'
  const save = async () => {
    const { words } = draft
    const rule = {
      rule: { query: words, match: 'contains' },
      includes: [{ id: document?.id, position: 1 }],
    }
    const says = `${title} comes first for “${words}”.`
    changed(await writeRule(`${pathOf(name)}/overrides`, words, rule, says))
  }
  return (
    <Way title="Put the document first" action="Put it first" waits={!document} save={save}>
      <p class="hint" dir="auto">
        Searches of {name} with these words have {title} before all others. Fewer words fit more questions. An
        earlier document for the same words gives way.
      </p>
      {text('words', 'When a question has the words', { required: true })}
    </Way>
  )
}

/** How long a search may go by earlier rules, in milliseconds. */
const RULES_MS = 3_000
let ruledAt = 0

/** Waits until searches know of the last rule. */
export const rulesKnown = (): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, Math.max(0, ruledAt + RULES_MS - Date.now())))

/** Writes a rule of one collection. The first one makes a set of its own, and the collection names it. */
async function writeRule(path: string, id: string, rule: object, says: string): Promise<Change> {
  const ask = async (method: string, body?: object) => {
    await send(method, `${path}/${encodeURIComponent(id)}`, body)
    ruledAt = Date.now()
  }
  await ask('PUT', rule)
  return { says, undo: () => ask('DELETE') }
}

/** A change that was made. */
export const Done = ({ change: { says, undo }, undone }: { change: Change; undone: () => void }) => (
  <li class="line">
    <span role="status" dir="auto">
      {says}
    </span>
    <Act label="Undo" run={() => undo().then(undone)} />
  </li>
)

// =============================================================================
// What is suggested: pure.

/** How many words of a document are offered. */
const MOST_WORDS = 300

const wordsOf = (text: string): string[] => [...new Set(text.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu))]

/** What fields of text are called that hold most of a document. */
const TEXTS = ['text', 'content', 'body', 'answer', 'description']

/** A value that a field takes. */
const nothing = ({ type }: Field): unknown =>
  type.endsWith('[]') ? [] : type === 'bool' ? false : /^(int|float)/.test(type) ? 0 : ''

/** A document to be written: what its collection asks for, called by the question, and which of it is the text. */
function answering({ fields }: Collection, question: string) {
  const texts = fields.filter(({ type, facet, index }) => type === 'string' && !facet && index)
  const named = (names: string[]) => names.find((name) => texts.some((each) => each.name === name))
  const title = named(TITLES)
  const long = named(TEXTS) ?? texts.find(({ name }) => !TITLES.includes(name))?.name
  const asked = fields.filter(
    ({ name, optional, embed }) => !embed && (!optional || name === title || name === long),
  )
  const isTitle = ({ name, type }: Field) => TITLES.includes(name) && type === 'string'
  return {
    long,
    properties: Object.fromEntries(
      asked.map((each) => [each.name, isTitle(each) ? question : nothing(each)]),
    ),
  }
}
