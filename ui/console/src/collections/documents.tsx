/** The documents of a collection, page by page. */
import { useState } from 'preact/hooks'
import { go, place, to } from '../address'
import { mapped, useRead } from '../api'
import { titleOf } from '../chat/insight'
import { Button } from '../parts/button'
import { List, Pager } from '../parts/list'
import { DocumentDialog } from './document'
import { type Collection, type Doc, excerpt, pathOf, type SearchResult, textFields } from './wire'

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
    exclude_fields: collection.fields
      .filter(({ type }) => type === 'float[]')
      .map((field) => field.name)
      .join(','),
  })
  const list = useRead<SearchResult>(`${pathOf(name)}/documents/search?${params}`)
  const [shown, setShown] = useState<Doc>()
  const last = Math.min(MOST_PAGES, Math.ceil((list.data?.found ?? 0) / PAGE))
  return (
    <>
      <List
        of={mapped(list, ({ hits }) => hits)}
        lines={8}
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
          <Pager
            page={page}
            last={last}
            label="Pages of documents"
            turn={(next) => go(to(['collections', name, 'documents'], { page: String(next) }))}
          />
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
