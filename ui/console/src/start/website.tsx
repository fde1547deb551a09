/** A website that somebody names: it becomes a source with a collection of its own, is read while one looks on, and is drawn with its chat. */
import { useEffect, useState } from 'preact/hooks'
import { nameOf } from '../../../../scripts/parley/import/site.mjs'
import { go, to } from '../address'
import { Refusal, read, send, useAction, useLoaded } from '../api'
import { Widget } from '../assistants/page'
import { loadChoices } from '../chat/choices'
import type { Collection } from '../collections/wire'
import { Button } from '../parts/button'
import { Form, TextField } from '../parts/form'
import { collectionName, count, many, when } from '../parts/format'
import { Problem } from '../parts/page'
import { Failures, pathOf, told } from '../sources/page'
import {
  addressOf,
  FIRST_PAGES,
  freeName,
  isFirst,
  isNew,
  looksOf,
  restsUntil,
  type Source,
  type Title,
  whyUnread,
} from './site'

/** Milliseconds between two looks: at the pages that are read now, and at those that follow in the background. */
const LOOK_MS = 700
const LATER_MS = 5_000
const MOST_TITLES = 100

const listSources = async () => (await read<{ sources: Source[] }>('/sources')).sources

/** Titles of the pages that a collection holds of a website, the newest first. */
async function titlesOf(collection: string, signal?: AbortSignal): Promise<Title[]> {
  const query = new URLSearchParams({
    q: '*',
    filter_by: 'parley_part:=1',
    include_fields: 'title,url',
    per_page: String(MOST_TITLES),
  })
  const path = `/collections/${encodeURIComponent(collection)}/documents/search?${query}`
  const { hits } = await read<{ hits: { document: Title }[] }>(path, signal)
  return hits.map(({ document }) => document)
}

// =============================================================================
// Its address.

/** Takes away a source that brought nothing, with its collection. Where that holds something, both stay. */
async function discard({ name, collection }: Pick<Source, 'name' | 'collection'>): Promise<void> {
  const made = (await read<Collection[]>('/collections')).find((each) => each.name === collection)
  if (made && made.num_documents > 0) return
  if ((await listSources()).some((each) => each.name === name)) await send('DELETE', pathOf({ name }))
  if (made) await send('DELETE', `/collections/${encodeURIComponent(collection)}`)
}

/** Registers a website. Of one that is registered, its collection is shown. @returns the name of the collection */
async function register(url: string): Promise<string> {
  const [{ collections = [], models = [], assistants = [] }, sources] = await Promise.all([
    loadChoices(),
    listSources(),
  ])
  const name = nameOf(url)
  const known = sources.find((each) => each.name === name)
  const holds = collections.find((each) => each.name === known?.collection)?.num_documents ?? 0
  if (known && (holds > 0 || isNew(known))) return known.collection
  if (known) await discard(known)
  const taken = [...collections, ...assistants, ...models.map(({ id }) => ({ name: id }))]
  const host = new URL(url).host.replace(/^www\./, '')
  const collection = freeName(collectionName(host), new Set(taken.map((each) => each.name)))
  try {
    await send('PUT', pathOf({ name }), { url, collection, prune: true })
  } catch (fault) {
    await discard({ name, collection })
    throw fault
  }
  return collection
}

interface AddressFormProps {
  /** what stands in the field at first, and why that could not be read */
  begin?: string | undefined
  fault?: Refusal | undefined
  registered?: () => void
}

export function AddressForm({ begin = '', fault, registered }: AddressFormProps) {
  const [address, setAddress] = useState(begin)
  const save = async () => {
    const collection = await register(addressOf(address))
    registered?.()
    go(to(['start'], { collection }))
  }
  return (
    <Form
      class="form"
      action="Read the website"
      busy="Looking at it …"
      save={save}
      beside={<Button label="Import files" icon="upload" href={to(['import'], { next: 'start' })} />}
    >
      <TextField
        label="The address of your website"
        placeholder="https://docs.example.com"
        required
        value={address}
        change={setAddress}
        hint={`The first ${FIRST_PAGES} pages are read while you look on. The others follow by themselves, up to 1,000, as its robots.txt allows.`}
      />
      {fault && <Problem error={fault} />}
    </Form>
  )
}

// =============================================================================
// How far it is read.

interface Watcher {
  source: (source: Source) => void
  titles: (titles: Title[]) => void
  /** hears once that the first pages are there */
  ready: (titles: Title[]) => void
}

/**
 * Has the first pages of a website read, and then looks how the server goes on, until all is read.
 * @returns why nothing could be read of it, if that is so: it is gone then, unless its collection holds something else
 */
async function watch(begun: Source, show: Watcher, signal: AbortSignal): Promise<string | undefined> {
  const { name, collection } = begun
  let source = begun
  let isReady = false
  const look = async () => {
    const titles = await titlesOf(collection, signal)
    show.titles(titles)
    return titles
  }
  const looking = () => look().catch(() => undefined)
  while (!signal.aborted) {
    const titles = await look()
    if (!isReady && titles.length > 0 && !isFirst(source) && whyUnread(source) === undefined) {
      isReady = true
      show.ready(titles.toReversed())
    }
    if (!isNew(source)) break
    if (isFirst(source)) {
      const timer = setInterval(looking, LOOK_MS)
      const stop = () => clearInterval(timer)
      signal.addEventListener('abort', stop)
      source = await send<Source>('POST', `${pathOf({ name })}/run`).finally(stop)
    } else {
      await new Promise((resolve) => setTimeout(resolve, LATER_MS))
      source = (await listSources()).find((each) => each.name === name) ?? source
    }
    if (!signal.aborted) show.source(source)
  }
  const why = whyUnread(source)
  if (!signal.aborted && why !== undefined) await discard(source)
  return why
}

interface ReadingProps {
  source: Source
  ready: (titles: Title[]) => Promise<void>
  /** hears that all is read */
  done: () => void
  /** hears that nothing could be read, and why */
  failed: (source: Source, why: Refusal) => void
}

/** How far a website is read, with the titles of its pages as they come, and what could not be read. */
export function Reading({ source: begun, ready, done, failed }: ReadingProps) {
  const [source, setSource] = useState(begun)
  const [titles, setTitles] = useState<Title[]>([])
  const [tries, setTries] = useState(0)
  const [lost, setLost] = useState<Refusal>()
  const making = useAction(ready)
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is watched is the source of this name
  useEffect(() => {
    if (!isNew(begun)) return
    const leaving = new AbortController()
    const { signal } = leaving
    setLost(undefined)
    watch(begun, { source: setSource, titles: setTitles, ready: making.start }, signal).then(
      (why) => !signal.aborted && (why === undefined ? done() : failed(begun, new Refusal(0, why))),
      (fault) => !signal.aborted && setLost(Refusal.of(fault)),
    )
    return () => leaving.abort()
  }, [begun.name, tries])
  const run = source.run ?? source.last_run
  return (
    <div class="reading pile">
      <p role="status">{isNew(source) ? saying(source) : told(source)}</p>
      {isFirst(source) && <progress value={titles.length} max={FIRST_PAGES} aria-label="Pages read" />}
      {titles.length > 0 && (
        <ul class="titles frame" aria-label="Pages that were read">
          {titles.map(({ title, url }) => (
            <li key={url} class="cut" dir="auto">
              <a href={url} target="_blank" rel="noreferrer">
                {title}
              </a>
            </li>
          ))}
        </ul>
      )}
      {run && <Failures run={run} open={titles.length > 0} />}
      {lost && <Problem error={lost} retry={() => setTries(tries + 1)} />}
      {making.error && <Problem error={making.error} />}
    </div>
  )
}

/** What is said of a website that is read for the first time. */
function saying(source: Source): string {
  const { url, run, max_pages: most } = source
  const rests = restsUntil(source)
  if (rests !== undefined) return `${url} asked to be left alone until ${when(rests)}. Then it is read on.`
  if (isFirst(source)) return `Reading ${url} …`
  const left = run?.left ? `${count(run.left)} more are known and follow` : 'More follow'
  return `${many(run?.pages ?? 0, 'page')} read. ${left} in the background, ${FIRST_PAGES} a minute, up to ${count(most)}.`
}

// =============================================================================
// Its picture.

/** Titles in the menu of the picture, and lines below its heading. */
const MENU = 5
const LINES = 16

interface PictureProps {
  assistant: string
  /** absent: what is asked is no website */
  source: Source | undefined
  answered: (conversation: string) => void
}

/** A page as the website's own may look, and on it the chat, which answers. Browsers show no other site within the console. */
export function Picture({ assistant, source, answered }: PictureProps) {
  const titles = useLoaded(source && `titles ${source.collection}`, (signal) =>
    titlesOf(source?.collection ?? '', signal),
  )
  const { heading, accent, origin } = source ? looksOf(source) : { heading: assistant }
  const [first, ...others] = titles.data?.toReversed() ?? []
  return (
    <div class="picture frame" style={{ '--site': accent }}>
      <div class="picture-page" aria-hidden="true">
        {origin !== undefined && <p class="picture-address cut">{origin}</p>}
        <p class="picture-name cut">{heading}</p>
        <div class="picture-body">
          <ul>
            {others.slice(0, MENU).map(({ title }) => (
              <li key={title} class="cut">
                {title}
              </li>
            ))}
          </ul>
          <div>
            <p class="picture-title cut">{first?.title ?? heading}</p>
            {Array.from({ length: LINES }, (_, line) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the lines are all alike
              <span key={line} class="picture-line" />
            ))}
          </div>
        </div>
      </div>
      <Widget assistant={assistant} answered={answered} {...(source && { heading, accent })} />
    </div>
  )
}
