/** What an import { Card } from '../parts/page'
import will do, what it does, and what came of it. */
import { useRef, useState } from 'preact/hooks'
import { place, to } from '../address'
import { Refusal, useAction, useLoaded } from '../api'
import { Cells } from '../collections/documents'
import { EmbeddingFault, useCollection } from '../collections/state'
import { Button } from '../parts/button'
import { CheckField, TextField } from '../parts/form'
import { collectionName, count, many } from '../parts/format'
import { Card } from '../parts/page'
import { Loading, Notice, Problem } from '../parts/states'
import type { Runner } from './page'
import type { Prepared } from './run'

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

export function Preview({ runner, content, title, unreadable, into, again }: PreviewProps) {
  const [name, setName] = useState(into || collectionName(title))
  const [prune, setPrune] = useState(false)
  const [sent, setSent] = useState(0)
  const [refused, setRefused] = useState<Fault[]>()
  const prepared = useLoaded(name === '' ? undefined : `import ${name}`, () =>
    runner.prepare(content, name, runner.EMBEDDING),
  )
  const { data } = prepared
  const unread: Fault[] = [
    ...unreadable.map((source) => ({ source, error: 'files of this kind are not read' })),
    ...content.read.unread,
    ...content.leftOut.map((source) => ({
      source,
      error: 'left out beside pages, since it is data: import it by itself',
    })),
    ...content.read.hidden.map((source) => ({ source, error: 'left out, since it is hidden' })),
    ...content.unindexed.map((source) => ({
      source,
      error: 'left out, since it redirects or asks not to be indexed (noindex)',
    })),
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
            <Button
              label={`Ask ${name}`}
              kind="primary"
              icon="chat"
              href={`./?collection=${encodeURIComponent(name)}`}
            />
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
          {prepared.loading && <Loading lines={2} label="Comparing with what is there" />}
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
              onClick={() => start()}
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
