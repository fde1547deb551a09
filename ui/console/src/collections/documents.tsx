/** The documents of a collection, page by page. */
import { useState } from 'preact/hooks'
import { go, place, to } from '../address'
import { read, useLoaded } from '../api'
import { titleOf } from '../chat/insight'
import { count } from '../parts/format'
import { Icon } from '../parts/icon'
import { Empty, Loading, Problem } from '../parts/states'
import { DocumentDialog } from './document-dialog'
import { excerpt } from './excerpt'
import { type Collection, type Doc, pathOf, type SearchResult, textFields } from './wire'

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
    exclude_fields: collection.fields
      .filter(({ type }) => type === 'float[]')
      .map((field) => field.name)
      .join(','),
  })
  const list = useLoaded(`documents ${name} ${page}`, (signal) =>
    read<SearchResult>(`${pathOf(name)}/documents/search?${params}`, signal),
  )
  const [shown, setShown] = useState<Doc>()
  const { data } = list
  if (collection.num_documents === 0) {
    return (
      <Empty icon="file" title="No documents yet">
        <p>Import files, or send documents to the API.</p>
        <a class="button primary" href={to(['import'], { into: name })}>
          <Icon name="upload" />
          Import files
        </a>
      </Empty>
    )
  }
  const last = Math.min(MOST_PAGES, Math.ceil((data?.found ?? 0) / PAGE))
  const turn = (next: number) => go(to(['collections', name, 'documents'], { page: String(next) }))
  return (
    <>
      {list.loading && <Loading lines={8} />}
      {list.error && <Problem error={list.error} retry={list.reload} />}
      {data && (
        <ul class="rows">
          {data.hits.map(({ document }) => (
            <li key={document.id}>
              <button type="button" class="row" onClick={() => setShown(document)}>
                <span class="row-title" dir="auto">
                  {titleOf(document)}
                </span>
                <span class="row-text" dir="auto">
                  {excerpt(document)}
                </span>
                <code class="row-id">{document.id}</code>
              </button>
            </li>
          ))}
        </ul>
      )}
      {last > 1 && (
        <nav class="pager" aria-label="Pages of documents">
          <button type="button" class="button" disabled={page <= 1} onClick={() => turn(page - 1)}>
            <Icon name="left" />
            Previous
          </button>
          <span class="soft">
            Page {count(page)} of {count(last)}
          </span>
          <button type="button" class="button" disabled={page >= last} onClick={() => turn(page + 1)}>
            Next
            <Icon name="right" />
          </button>
        </nav>
      )}
      {shown && (
        <DocumentDialog
          collection={name}
          document={shown}
          close={() => setShown(undefined)}
          removed={() => {
            list.reload()
            changed()
          }}
        />
      )}
    </>
  )
}
