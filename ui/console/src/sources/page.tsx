/** Websites that the server reads again by itself: how their runs went, and what to do about them. */
import { useState } from 'preact/hooks'
import { go, place, to } from '../address'
import { mapped, read, send, useAction, useLoaded } from '../api'
import { Confirm, Dialog } from '../parts/dialog'
import { ago, many, when } from '../parts/format'
import { Icon } from '../parts/icon'
import { Item, ListPage } from '../parts/list-page'
import { Problem } from '../parts/states'

interface Run {
  started_at: number
  pages: number
  changed: number
  unchanged: number
  gone: number
  failed: number
  failures: { url: string; error: string }[]
}

interface Source {
  name: string
  url: string
  collection: string
  state: 'waiting' | 'reading'
  next_run_at: number
  run?: Run
  last_run?: Run
}

const pathOf = ({ name }: Source) => `/sources/${encodeURIComponent(name)}`

export default function Sources() {
  const list = useLoaded('sources', (signal) => read<{ sources: Source[] }>('/sources', signal))
  const [removing, setRemoving] = useState<Source>()
  return (
    <ListPage
      title="Sources"
      lead="Websites that are read again by themselves. Only pages that changed are imported."
      list={mapped(list, ({ sources }) => sources)}
      empty={{
        icon: 'again',
        title: 'No sources yet',
        text: 'Register a website, and its collection stays up to date.',
      }}
      action={
        <a class="button primary" href={to(['sources'], { new: '1' })}>
          <Icon name="plus" />
          New source
        </a>
      }
      item={(each) => (
        <Item
          key={each.name}
          name={each.name}
          about={
            <>
              {each.url} into <a href={to(['collections', each.collection])}>{each.collection}</a> ·{' '}
              {told(each)}
            </>
          }
          called={`the source ${each.name}`}
          remove={() => setRemoving(each)}
        >
          {each.state === 'reading' && <span class="badge">reading</span>}
          {each.last_run && <Failures run={each.last_run} />}
          <ReadNow source={each} done={list.reload} />
        </Item>
      )}
    >
      {place.value.query.has('new') && (
        <NewSource
          close={() => {
            go(to(['sources']), { replace: true })
            list.reload()
          }}
        />
      )}
      {removing && (
        <Confirm
          title={`Remove ${removing.name}?`}
          action="Remove the source"
          run={async () => {
            await send('DELETE', pathOf(removing))
            list.reload()
          }}
          close={() => setRemoving(undefined)}
        >
          <p>It is read no more. Its documents stay in {removing.collection}.</p>
        </Confirm>
      )}
    </ListPage>
  )
}

function told({ state, run, last_run: last, next_run_at: next }: Source): string {
  const shown = state === 'reading' && run ? run : last
  if (!shown) return 'not read yet'
  const { pages, changed, gone } = shown
  const parts = [many(pages, 'page'), `${changed} changed`, ...(gone > 0 ? [`${gone} gone`] : [])]
  return `${parts.join(', ')} ${ago(shown.started_at)}${state === 'waiting' ? ` · again ${when(next)}` : ''}`
}

const Failures = ({ run: { failed, failures } }: { run: Run }) =>
  failed > 0 && (
    <details>
      <summary class="badge bad">{failed} failed</summary>
      <ul class="faults">
        {failures.map(({ url, error }) => (
          <li key={url}>
            <span class="soft">{url}</span> <span>{error}</span>
          </li>
        ))}
      </ul>
    </details>
  )

/** Reads the site until its run has ended, unless the site asks to be left alone for a while. */
function ReadNow({ source, done }: { source: Source; done: () => void }) {
  const { busy, error, start } = useAction(async () => {
    for (let now = source; ; done()) {
      now = await send<Source>('POST', `${pathOf(source)}/run`)
      if (now.state === 'waiting' || now.next_run_at > Date.now() + 1_000) break
    }
    done()
  })
  return (
    <>
      <button type="button" class="button" disabled={busy} onClick={() => start()}>
        {busy ? 'Reading …' : 'Read now'}
      </button>
      {error && <Problem error={error} />}
    </>
  )
}

function NewSource({ close }: { close: () => void }) {
  const [url, setUrl] = useState('')
  const [collection, setCollection] = useState('')
  const [prune, setPrune] = useState(true)
  const { busy, error, start } = useAction(async (_: Event) => {
    const { hostname } = new URL(url)
    await send('PUT', `/sources/${encodeURIComponent(hostname)}`, { url, collection, prune })
    close()
  })
  return (
    <Dialog title="New source" close={close}>
      <form class="dialog-body form" onSubmit={start} autocomplete="off">
        <div>
          <label class="field-label" for="source-url">
            Address of the website
          </label>
          <input
            id="source-url"
            class="input"
            type="url"
            required
            placeholder="https://docs.example.com/"
            value={url}
            onInput={(event) => setUrl(event.currentTarget.value)}
          />
        </div>
        <div>
          <label class="field-label" for="source-collection">
            Collection
          </label>
          <input
            id="source-collection"
            class="input"
            required
            placeholder="a new one, or one that was imported"
            value={collection}
            onInput={(event) => setCollection(event.currentTarget.value)}
          />
        </div>
        <label class="check">
          <input
            type="checkbox"
            checked={prune}
            onChange={(event) => setPrune(event.currentTarget.checked)}
          />
          Remove pages that are gone
        </label>
        {error && <Problem error={error} />}
        <div class="dialog-foot">
          <button type="submit" class="button primary" disabled={busy}>
            {busy ? 'Registering …' : 'Register'}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
