/** Import: files that are dropped or chosen, read in the browser by the command line's own readers. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { place, to, toAsk } from '../address'
import { Refusal, useAction, useLoaded } from '../api'
import { Cells } from '../collections/documents'
import { EmbeddingFault, useCollection } from '../collections/state'
import { Button, Icon } from '../parts/button'
import { CheckField, TextField } from '../parts/form'
import { collectionName, count, many } from '../parts/format'
import { Card, Loading, Notice, Page, Problem } from '../parts/page'
import { dropped, files, isOver } from './dropped'
import type { Chosen } from './files'
import type { Prepared } from './run'

/** The readers and what they need are heavy: they are loaded when there is something to read. */
export type Runner = typeof import('./run')

type State =
  | { step: 'choose'; error?: Refusal }
  | { step: 'reading'; chosen: Chosen; count: number }
  | { step: 'read'; runner: Runner; content: Awaited<ReturnType<Runner['readFiles']>>; chosen: Chosen }

export default function ImportPage() {
  const into = place.value.query.get('into') ?? ''
  const [state, setState] = useState<State>({ step: 'choose' })
  const start = async (choose: () => Promise<Chosen>) => {
    try {
      const chosen = await choose()
      if (chosen.files.length === 0) {
        const [name] = chosen.unreadable
        throw new Refusal(
          0,
          name === undefined
            ? 'There is no file in it that can be read. Markdown, HTML, PDF, DOCX, PPTX, EPUB, XLSX, CSV, JSON and text can.'
            : `${name} cannot be read. Markdown, HTML, PDF, DOCX, PPTX, EPUB, XLSX, CSV, JSON and text files can.`,
        )
      }
      setState({ step: 'reading', chosen, count: 0 })
      const runner = await import('./run')
      const content = await runner.readFiles(chosen, (count) => setState({ step: 'reading', chosen, count }))
      setState({ step: 'read', runner, content, chosen })
    } catch (error) {
      setState({ step: 'choose', error: Refusal.of(error) })
    }
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: what waits is taken once
  useEffect(() => {
    const choose = dropped.value
    if (!choose) return
    dropped.value = undefined
    start(choose)
  }, [dropped.value])
  return (
    <Page
      title="Import files"
      up={
        into === ''
          ? { title: 'Collections', href: to(['collections']) }
          : { title: into, href: to(['collections', into]) }
      }
      lead="Files are read in your browser, by the readers of the command line. Only what has changed is sent."
    >
      {state.step === 'choose' && (
        <>
          {state.error && <Problem error={state.error} />}
          <Drop start={start} />
          <p class="hint">
            Of a folder everything in it is read, but for hidden files, node_modules and what a .gitignore
            names. Importing the same folder again updates what changed. For a website or a schedule use{' '}
            <code>npm run parley -- import</code>.
          </p>
        </>
      )}
      {state.step === 'reading' && (
        <div class="panel-card frame" role="status">
          <p class="line">
            <Icon name="file" /> Reading {state.chosen.title}: {state.count} of {state.chosen.files.length}{' '}
            files
          </p>
          <progress max={state.chosen.files.length} value={state.count} aria-label="Files read" />
        </div>
      )}
      {state.step === 'read' && (
        <Preview
          runner={state.runner}
          content={state.content}
          title={state.chosen.title}
          unreadable={state.chosen.unreadable}
          into={into}
          again={() => setState({ step: 'choose' })}
        />
      )}
    </Page>
  )
}

/** Where files are dropped, or chosen. */
function Drop({ start }: { start: (choose: () => Promise<Chosen>) => void }) {
  const single = useRef<HTMLInputElement>(null)
  const folder = useRef<HTMLInputElement>(null)
  const choose = (input: HTMLInputElement, isFolder: boolean) => {
    const given = Array.from(input.files ?? [])
    input.value = ''
    if (given.length === 0) return
    start(async () => {
      const { ofFiles, ofFolder } = await files()
      return isFolder ? ofFolder(given) : ofFiles(given)
    })
  }
  return (
    <div class={isOver.value ? 'drop pile over' : 'drop pile'}>
      <span class="empty-icon">
        <Icon name="upload" />
      </span>
      <p class="drop-title">Drop a folder or files here</p>
      <p class="soft">
        Markdown, HTML, PDF, DOCX, PPTX, EPUB, XLSX, CSV, JSON, JSON Lines, notebooks, reStructuredText,
        AsciiDoc and plain text
      </p>
      <div class="line">
        <Button label="Choose a folder" kind="primary" onClick={() => folder.current?.click()} />
        <Button label="Choose files" onClick={() => single.current?.click()} />
      </div>
      <input
        ref={single}
        type="file"
        multiple
        hidden
        aria-label="Files"
        onChange={(event) => choose(event.currentTarget, false)}
      />
      <input
        ref={folder}
        type="file"
        hidden
        aria-label="A folder"
        {...{ webkitdirectory: true }}
        onChange={(event) => choose(event.currentTarget, true)}
      />
    </div>
  )
}

// =============================================================================
// What an import will do, what it does, and what came of it.

interface PreviewProps {
  runner: Runner
  content: Awaited<ReturnType<Runner['readFiles']>>
  /** what the folder or the file is called */
  title: string
  unreadable: string[]
  /** the collection, where the page was opened for one */
  into: string
  again: () => void
}

/** How many documents are named before they are sent. */
const NAMED = 5

/** The first documents, so that somebody sees that they were read as they were meant. */
function Sample({ documents }: { documents: Prepared['documents'] }) {
  return (
    <ul class="sample rows frame" aria-label="The first documents">
      {documents.slice(0, NAMED).map((document) => (
        <li key={document.id} class="row">
          <Cells of={document} />
        </li>
      ))}
      {documents.length > NAMED && (
        <li class="row">
          <span class="soft">and {count(documents.length - NAMED)} more</span>
        </li>
      )}
    </ul>
  )
}

function Preview({ runner, content, title, unreadable, into, again }: PreviewProps) {
  const [name, setName] = useState(into || collectionName(title))
  const [prune, setPrune] = useState(false)
  const [sent, setSent] = useState(0)
  const [refused, setRefused] = useState<Fault[]>()
  const prepared = useLoaded(name === '' ? undefined : `import ${name}`, () =>
    runner.prepare(content, name, runner.EMBEDDING),
  )
  const { data } = prepared
  const unread: Fault[] = [
    ...faultsOf(unreadable, 'files of this kind are not read'),
    ...content.read.unread,
    ...faultsOf(content.leftOut, 'left out beside pages, since it is data: import it by itself'),
    ...faultsOf(content.read.hidden, 'left out, since it is hidden'),
    ...faultsOf(content.unindexed, 'left out, since it redirects or asks not to be indexed (noindex)'),
  ]
  const { busy, error, start } = useAction(async () => {
    if (!data) return
    setSent(0)
    const rejected = await runner.send(data, name, prune, setSent)
    setRefused(rejected.map(({ id, error }) => ({ source: id, error })))
  })
  if (refused && data) {
    const taken = data.plan.changed.length - refused.length
    return (
      <>
        {taken === 0 && refused.length > 0 ? (
          <Notice>
            <p>
              Nothing was imported into {name}: the server refused {many(refused.length, 'document')}.
            </p>
          </Notice>
        ) : (
          <Notice good icon="check">
            <p>
              {many(taken, 'document')} imported into {name}
              {data.plan.unchanged > 0 ? `, ${count(data.plan.unchanged)} had not changed` : ''}.
            </p>
          </Notice>
        )}
        <Embedding collection={name} />
        <Faults title="Refused by the server" faults={refused} />
        <Faults title="Not read" faults={unread} />
        <div class="line">
          {place.value.query.get('next') === 'start' ? (
            <Button label="Go on" kind="primary" after="right" href={to(['start'], { collection: name })} />
          ) : (
            <Button label={`Ask ${name}`} kind="primary" icon="chat" href={toAsk('collection', name)} />
          )}
          <Button label="Search it" href={to(['collections', name])} />
          <Button label="Import more" kind="quiet" onClick={again} />
        </div>
      </>
    )
  }
  const idle = data !== undefined && data.plan.changed.length === 0 && !(prune && data.plan.gone.length > 0)
  const nothing = content.read.articles.length + content.read.rows.length === 0
  return (
    <>
      {nothing ? (
        <Problem error={new Refusal(0, 'Nothing could be read. The reasons are below.')} />
      ) : (
        <div class="panel-card frame form">
          <TextField
            label="Collection"
            value={name}
            disabled={busy || into !== ''}
            change={(typed) => setName(typed.trim())}
          />
          {name === '' && <p class="soft">Give the collection a name.</p>}
          {prepared.loading && <Loading label="Comparing with what is there" />}
          {prepared.error && <Problem error={prepared.error} retry={prepared.reload} />}
          {data && (
            <>
              <p role="status">
                <strong>{many(data.documents.length, 'document')}</strong>
                {data.exists
                  ? `: ${count(data.plan.added)} new, ${count(data.plan.changed.length - data.plan.added)} changed, ${count(data.plan.unchanged)} unchanged, ${count(data.plan.gone.length)} gone`
                  : `. The collection is made with the fields ${data.fields.map((field) => field.name).join(', ')}.`}
              </p>
              <Sample documents={data.documents} />
              {data.plan.gone.length > 0 && (
                <CheckField
                  label={`Remove the ${many(data.plan.gone.length, 'document')} that the source does not have any more`}
                  checked={prune}
                  change={setPrune}
                />
              )}
            </>
          )}
          {idle && <p class="soft">Everything is there already: there is nothing to import.</p>}
          {error && <Problem error={error} />}
          {busy && data && (
            <div role="status">
              <p>
                Sent {count(sent)} of {count(data.plan.changed.length)}
              </p>
              <progress max={data.plan.changed.length} value={sent} aria-label="Documents sent" />
            </div>
          )}
          <div class="line">
            <Button
              label={error ? 'Try again' : 'Import'}
              kind="primary"
              icon="upload"
              disabled={!data || busy || idle}
              onClick={start}
            />
            <Button label="Choose other files" kind="quiet" disabled={busy} onClick={again} />
          </div>
        </div>
      )}
      <Faults title="Not read" faults={unread} />
      {nothing && (
        <div class="line">
          <Button label="Choose other files" onClick={again} />
        </div>
      )}
    </>
  )
}

interface Fault {
  /** the file, or the id of the document */
  source: string
  error: string
}

const faultsOf = (sources: string[], error: string): Fault[] => sources.map((source) => ({ source, error }))

const SHOWN = 50

function Faults({ title, faults }: { title: string; faults: Fault[] }) {
  if (faults.length === 0) return null
  return (
    <Card title={`${title}: ${count(faults.length)}`}>
      <ul class="faults pile">
        {faults.slice(0, SHOWN).map(({ source, error }) => (
          <li key={source} class="line">
            <code>{source}</code>
            <span class="bad">{error}</span>
          </li>
        ))}
      </ul>
      {faults.length > SHOWN && <p class="soft">And {many(faults.length - SHOWN, 'more', 'more')}.</p>}
    </Card>
  )
}

/** Words are found at once, meaning when the vectors are there. */
function Embedding({ collection }: { collection: string }) {
  const { data } = useCollection(collection)
  const left = data?.pending_embeddings ?? 0
  const most = useRef(0)
  most.current = Math.max(most.current, left)
  const fault = data && <EmbeddingFault collection={data} />
  if (most.current === 0) return fault
  return (
    <div class="panel-card frame" role="status">
      <p>
        {left > 0
          ? `Vectors are being made: ${count(most.current - left)} of ${count(most.current)}. Words are found already.`
          : data?.refused_embeddings
            ? 'All other vectors are made: those documents are found by meaning too.'
            : 'All vectors are made: documents are found by meaning too.'}
      </p>
      {fault}
      <progress max={most.current} value={most.current - left} aria-label="Vectors made" />
    </div>
  )
}
