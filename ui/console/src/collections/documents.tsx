/** The documents of a collection, page by page. */
import { useState } from 'preact/hooks'
import { LONG_TEXT, passagesOf } from '../../../../src/models/passages'
import { go, place, to } from '../address'
import { mapped, Refusal, send, useRead } from '../api'
import { titleOf } from '../chat/insight'
import { Button } from '../parts/button'
import { changesOf, Dialog, FormDialog, objectIn, TextField, useDraft } from '../parts/form'
import { count, many } from '../parts/format'
import { List, Raw } from '../parts/list'
import { Act } from '../parts/page'
import {
  type Collection,
  type Doc,
  excerpt,
  isVector,
  namesOf,
  pathOf,
  type SearchResult,
  textFields,
} from './wire'

/** A document in a row: its title, the beginning of its text and its id. */
export const Cells = ({ of }: { of: Doc }) => (
  <>
    <span class="row-title cut" dir="auto">
      {titleOf(of)}
    </span>
    <span class="row-text cut" dir="auto">
      {excerpt(of)}
    </span>
    <code class="cut">{of.id}</code>
  </>
)

const PAGE = 25
/** Past this the server does not page. */
const MOST_PAGES = 1_000

export function Documents({ collection, changed }: { collection: Collection; changed: () => void }) {
  const { name } = collection
  const page = Math.max(1, Number(place.value.query.get('page')) || 1)
  const params = new URLSearchParams({
    q: '*',
    per_page: String(PAGE),
    page: String(page),
    ...(textFields(collection).length > 0 && { query_by: textFields(collection)[0]! }),
    exclude_fields: namesOf(collection, isVector),
  })
  const list = useRead<SearchResult>(`${pathOf(name)}/documents/search?${params}`)
  const [shown, setShown] = useState<Doc>()
  const last = Math.min(MOST_PAGES, Math.ceil((list.data?.found ?? 0) / PAGE))
  const turn = (next: number) => go(to(['collections', name, 'documents'], { page: String(next) }))
  return (
    <>
      <List
        of={mapped(list, ({ hits }) => hits)}
        class="rows frame"
        empty={
          page === 1
            ? {
                icon: 'file',
                title: 'No documents yet',
                text: 'Import files, or send documents to the API.',
                action: (
                  <Button
                    label="Import files"
                    kind="primary"
                    icon="upload"
                    href={to(['import'], { into: name })}
                  />
                ),
              }
            : {
                icon: 'file',
                title: 'There is no such page',
                text: 'It has fewer documents than that.',
                action: <Button label="The first page" href={to(['collections', name, 'documents'])} />,
              }
        }
        item={({ document }) => (
          <li key={document.id}>
            <button type="button" class="row" onClick={() => setShown(document)}>
              <Cells of={document} />
            </button>
          </li>
        )}
        after={
          (last > 1 || page > 1) && (
            <nav class="pager line" aria-label="Pages of documents">
              <Button
                label="Previous"
                icon="left"
                disabled={page <= 1}
                onClick={() => turn(Math.min(page - 1, last))}
              />
              <span class="soft">
                Page {count(page)} of {count(last)}
              </span>
              <Button label="Next" after="right" disabled={page >= last} onClick={() => turn(page + 1)} />
            </nav>
          )
        }
      />
      {shown && (
        <DocumentDialog
          collection={name}
          document={shown}
          close={() => setShown(undefined)}
          changed={() => {
            list.reload()
            changed()
          }}
        />
      )}
    </>
  )
}

// =============================================================================
// A document: as it is stored, in the passages that a model reads of it, and to be changed.

interface DocumentProps {
  collection: string
  document: Doc
  close: () => void
  /** it was changed or deleted; absent: it is only looked at */
  changed?: () => void
}

const VIEWS = ['As stored', 'Passages'] as const

export function DocumentDialog({ collection, document: given, close, changed }: DocumentProps) {
  const [document, setDocument] = useState(given)
  const [before, setBefore] = useState<Doc>()
  const [editing, setEditing] = useState(false)
  const [view, setView] = useState<(typeof VIEWS)[number]>('As stored')
  const [sure, setSure] = useState(false)
  const text = JSON.stringify(document, null, 2)
  const saved = (now: Doc, undo?: Doc) => {
    setBefore(undo)
    setDocument(now)
    setEditing(false)
    changed?.()
  }
  const remove = async () => {
    if (!sure) return setSure(true)
    await send('DELETE', pathOfDocument(collection, document.id))
    changed?.()
    close()
  }
  if (editing) {
    return (
      <EditDocument
        collection={collection}
        document={document}
        saved={(now) => saved(now, document)}
        close={() => setEditing(false)}
      />
    )
  }
  return (
    <Dialog title={document.id} close={close} class="wide">
      <div class="dialog-body pile">
        <div class="line">
          {VIEWS.map((each) => (
            <Button label={each} key={each} aria-pressed={each === view} onClick={() => setView(each)} />
          ))}
        </div>
        {view === 'Passages' ? (
          <Passages document={document} />
        ) : (
          <Raw name="JSON" text={text} copy="Copy the document" label="The document as JSON" />
        )}
      </div>
      {changed && (
        <div class="dialog-foot line">
          <span role="status" class="grow">
            {before && 'Saved.'}
          </span>
          {before && (
            <Act
              label="Undo"
              run={() => changeDocument(collection, document, before).then(() => saved(before))}
            />
          )}
          <Button label="Edit" icon="edit" onClick={() => setEditing(true)} />
          <Act
            label={sure ? 'Delete for good' : 'Delete the document'}
            kind={sure ? 'danger' : ''}
            run={remove}
          />
        </div>
      )}
    </Dialog>
  )
}

/** Longer texts have a field of several lines. */
const LINE = 80

export const pathOfDocument = (collection: string, id: string): string =>
  `${pathOf(collection)}/documents/${encodeURIComponent(id)}`

/** Only what changed is sent: vectors that are not shown stay. @throws Refusal */
export const changeDocument = (collection: string, before: Doc, after: Doc): Promise<unknown> =>
  send('PATCH', pathOfDocument(collection, before.id), changesOf(before, after))

interface EditProps {
  collection: string
  document: Doc
  saved: (document: Doc) => void
  close: () => void
}

/** A document to be changed. */
export const EditDocument = ({ collection, document, saved, close }: EditProps) => {
  const { id, ...properties } = document
  const save = async (next: Record<string, unknown>) => {
    if ('id' in next) throw new Refusal(0, 'The id of a document cannot be changed.')
    const after = { id, ...next }
    await changeDocument(collection, document, after)
    saved(after)
  }
  return <DocumentForm title={`Edit ${id}`} properties={properties} save={save} close={close} />
}

interface DocumentFormProps {
  title: string
  properties: Record<string, unknown>
  /** the text that has a field of several lines, though it is short still */
  long?: string | undefined
  save: (properties: Record<string, unknown>) => Promise<unknown>
  close: () => void
}

/** The properties of a document: its texts in fields of their own, and the rest of it as JSON. */
export function DocumentForm({ title, properties, long, save, close }: DocumentFormProps) {
  const all = Object.entries(properties)
  const rest = Object.fromEntries(all.filter(([, value]) => typeof value !== 'string'))
  const { draft: texts, text } = useDraft<Record<string, string>>(
    Object.fromEntries(all.filter((entry): entry is [string, string] => typeof entry[1] === 'string')),
  )
  const [others, setOthers] = useState(JSON.stringify(rest, null, 2))
  return (
    <FormDialog title={title} close={close} save={async () => save({ ...texts, ...objectIn(others) })} wide>
      {Object.keys(texts).map((name) =>
        text(name, name, { ...((name === long || String(properties[name]).length > LINE) && { rows: 12 }) }),
      )}
      <details open={all.length > 0 && Object.keys(texts).length === 0}>
        <summary>Other properties</summary>
        <TextField
          label="JSON"
          rows={6}
          code
          required
          value={others}
          hint="A property that you remove is taken away. Vectors are made anew by themselves."
          change={setOthers}
        />
      </details>
    </FormDialog>
  )
}

/** The passages of a document: what a model reads of it when a prompt has no room for all of it. */
function Passages({ document }: { document: Doc }) {
  const long = Object.entries(document).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1].length > LONG_TEXT,
  )
  if (long.length === 0) {
    return <p class="hint">It has no long text: a model reads it whole, or not at all.</p>
  }
  return long.map(([field, text]) => {
    const passages = passagesOf(text)
    return (
      <section key={field}>
        <p class="hint">
          <code>{field}</code> has {count(text.length)} characters in {many(passages.length, 'passage')}. When
          a prompt has no room for all of it, a model reads those that say most about the question.
        </p>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached with the keyboard */}
        <ol class="document-passages pile" tabIndex={0} aria-label={`Passages of ${field}`}>
          {passages.map((passage) => (
            <li key={passage.position} class="document-passage frame">
              <p class="soft" dir="auto">
                {passage.position + 1}
                {passage.headings.map(({ text: heading }) => ` › ${heading}`).join('')}
              </p>
              <p class="document-passage-text" dir="auto">
                {passage.text}
              </p>
            </li>
          ))}
        </ol>
      </section>
    )
  })
}
