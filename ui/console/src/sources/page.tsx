/** Websites, buckets and Git archives that the server reads again by itself: how their runs went, and what to do about them. */
import { useState } from 'preact/hooks'
import { nameOf } from '../../../../scripts/parley/import/site.mjs'
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
  kind: 'website' | 'bucket' | 'archive'
  url: string
  collection: string
  state: 'waiting' | 'reading'
  next_run_at: number
  run?: Run
  last_run?: Run
}

/** What a source is called by its kind. */
const KINDS = { website: 'Website', bucket: 'Bucket', archive: 'Git archive' }
/** What a run counts. */
const PIECES = { website: 'page', bucket: 'file', archive: 'file' } as const

const pathOf = ({ name }: Pick<Source, 'name'>) => `/sources/${encodeURIComponent(name)}`

export default function Sources() {
  const list = useLoaded('sources', (signal) => read<{ sources: Source[] }>('/sources', signal))
  const [removing, setRemoving] = useState<Source>()
  return (
    <ListPage
      title="Sources"
      lead="Websites, buckets and Git archives that are read again by themselves. Only what changed is imported."
      list={mapped(list, ({ sources }) => sources)}
      empty={{
        icon: 'again',
        title: 'No sources yet',
        text: 'Register a website, a bucket or a Git archive, and its collection stays up to date.',
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
              {KINDS[each.kind]} {each.url} into{' '}
              <a href={to(['collections', each.collection])}>{each.collection}</a> · {told(each)}
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

function told({ kind, state, run, last_run: last, next_run_at: next }: Source): string {
  const shown = state === 'reading' && run ? run : last
  if (!shown) return 'not read yet'
  const { pages, changed, gone } = shown
  const parts = [many(pages, PIECES[kind]), `${changed} changed`, ...(gone > 0 ? [`${gone} gone`] : [])]
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
  const [base, setBase] = useState('')
  const [prune, setPrune] = useState(true)
  const { busy, error, start } = useAction(async (_: Event) => {
    const body = { url, collection, prune, ...(base !== '' && { base_url: base }) }
    await send('PUT', pathOf({ name: nameOf(url) }), body)
    close()
  })
  return (
    <Dialog title="New source" close={close}>
      <form class="dialog-body form" onSubmit={start} autocomplete="off">
        <div>
          <label class="field-label" for="source-url">
            Address
          </label>
          <input
            id="source-url"
            class="input"
            type="url"
            required
            placeholder="https://docs.example.com/"
            aria-describedby="source-kinds"
            value={url}
            onInput={(event) => setUrl(event.currentTarget.value)}
          />
          <p class="hint" id="source-kinds">
            A website, a sitemap or a feed. Or a Git archive,
            https://github.com/OWNER/REPO/archive/refs/heads/main.tar.gz, with #FOLDER for a part of it. Or a
            bucket of R2, r2://NAME/FOLDER/.
          </p>
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
        {/^r2:|\.(?:tar\.gz|tgz)(?:#|$)/i.test(url) && (
          <div>
            <label class="field-label" for="source-base">
              Where its files are read on the web
            </label>
            <input
              id="source-base"
              class="input"
              type="url"
              placeholder="optional, such as https://docs.example.com/"
              value={base}
              onInput={(event) => setBase(event.currentTarget.value)}
            />
          </div>
        )}
        <label class="check">
          <input
            type="checkbox"
            checked={prune}
            onChange={(event) => setPrune(event.currentTarget.checked)}
          />
          Remove what is gone
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
