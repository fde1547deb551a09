/** Websites, buckets and Git archives that the server reads again by itself: how their runs went, and what to do about them. */
import { nameOf } from '../../../../scripts/parley/import/site.mjs'
import { to } from '../address'
import { mapped, send, useRead } from '../api'
import { FormDialog, given, numberIn, useDraft } from '../parts/form'
import { ago, many, when } from '../parts/format'
import { ListPage } from '../parts/list'
import { Act } from '../parts/page'
import type { Source } from '../start/site'

type Run = NonNullable<Source['last_run']>

/** What a source is called by its kind. */
const KINDS = { website: 'Website', bucket: 'Bucket', archive: 'Git archive' }
/** What a run counts. */
const PIECES = { website: 'page', bucket: 'file', archive: 'file' } as const

export const pathOf = ({ name }: Pick<Source, 'name'>) => `/sources/${encodeURIComponent(name)}`

export default function Sources() {
  const list = useRead<{ sources: Source[] }>('/sources')
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
      kind="source"
      form={(close) => <SourceDialog close={close} />}
      edit={(each, close) => <SourceDialog source={each} close={close} />}
      item={(each) => ({
        name: each.name,
        about: (
          <>
            {KINDS[each.kind]} {each.url} into{' '}
            <a href={to(['collections', each.collection])}>{each.collection}</a> · {told(each)}
          </>
        ),
        path: pathOf(each),
        says: `It is read no more. Its documents stay in ${each.collection}.`,
        action: 'Remove the source',
        children: (
          <>
            {each.state === 'reading' && <span class="badge">reading</span>}
            {each.last_run && <Failures run={each.last_run} />}
            <Act label="Read now" busy="Reading …" run={() => readNow(each, list.reload)} />
          </>
        ),
      })}
    />
  )
}

/** How far a source is, in a line. */
export function told({ kind, state, run, last_run: last, next_run_at: next }: Source): string {
  const shown = state === 'reading' && run ? run : last
  if (!shown) return 'not read yet'
  const { pages, changed, gone } = shown
  const parts = [many(pages, PIECES[kind]), `${changed} changed`, ...(gone > 0 ? [`${gone} gone`] : [])]
  return `${parts.join(', ')} ${ago(shown.started_at)}${state === 'waiting' ? ` · again ${when(next)}` : ''}`
}

export const Failures = ({ run: { failed, failures }, open = false }: { run: Run; open?: boolean }) =>
  failed > 0 && (
    <details open={open}>
      <summary class="badge bad">{failed} failed</summary>
      <ul class="faults pile">
        {failures.map(({ url, error }) => (
          <li key={url} class="line">
            <span class="soft">{url}</span> <span>{error}</span>
          </li>
        ))}
      </ul>
    </details>
  )

/** Reads the site until its run has ended, unless the site asks to be left alone for a while. */
async function readNow(source: Source, done: () => void): Promise<void> {
  for (let goesOn = true; goesOn; done()) {
    const now = await send<Source>('POST', `${pathOf(source)}/run`)
    goesOn = now.state === 'reading' && now.next_run_at <= Date.now() + 1_000
  }
}

/** A new source, or what is to change about one. */
function SourceDialog({ source, close }: { source?: Source; close: () => void }) {
  const { draft, text, check } = useDraft({
    url: source?.url ?? '',
    collection: source?.collection ?? '',
    base_url: source?.base_url ?? '',
    prune: source?.prune ?? true,
    hours: source ? String(source.every_minutes / 60) : '',
    max_pages: String(source?.max_pages ?? ''),
  })
  const { hours, ...body } = draft
  return (
    <FormDialog
      title={source ? `Edit ${source.name}` : 'New source'}
      action={source ? 'Save' : 'Register'}
      busy={source ? 'Saving …' : 'Registering …'}
      close={close}
      save={() =>
        send(
          'PUT',
          pathOf(source ?? { name: nameOf(body.url) }),
          given({
            ...body,
            every_minutes: hours === '' ? source?.every_minutes : Math.round(Number(hours) * 60),
            max_pages: numberIn(body.max_pages),
          }),
        )
      }
    >
      {text('url', 'Address', {
        type: 'url',
        required: true,
        placeholder: 'https://docs.example.com/',
        hint: 'A website, a sitemap or a feed. Or a Git archive, https://github.com/OWNER/REPO/archive/refs/heads/main.tar.gz, with #FOLDER for a part of it. Or a bucket of R2, r2://NAME/FOLDER/.',
      })}
      {text('collection', 'Collection', {
        required: true,
        placeholder: 'a new one, or one that was imported',
      })}
      {/^r2:|\.(?:tar\.gz|tgz)(?:#|$)/i.test(body.url) &&
        text('base_url', 'Where its files are read on the web', {
          type: 'url',
          placeholder: 'optional, such as https://docs.example.com/',
        })}
      {source && (
        <>
          {text('hours', 'Read again after hours', { type: 'number', min: '0.25', step: 'any' })}
          {text('max_pages', 'Pages at most', { type: 'number', min: '1' })}
        </>
      )}
      {check('prune', 'Remove what is gone')}
    </FormDialog>
  )
}
