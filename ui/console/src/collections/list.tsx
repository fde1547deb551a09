/** The list of collections. */
import { useState } from 'preact/hooks'
import { to } from '../address'
import { read, send, useLoaded } from '../api'
import { Confirm } from '../parts/dialog'
import { ago, many } from '../parts/format'
import { Icon } from '../parts/icon'
import { Page } from '../parts/page'
import { Empty, Loading, Problem } from '../parts/states'
import { EmbeddingState } from './embedding-state'
import { type Collection, pathOf, vectorField } from './wire'

export function CollectionList() {
  const list = useLoaded('collections', (signal) => read<Collection[]>('/collections', signal))
  const [removing, setRemoving] = useState<Collection>()
  const empty = list.data?.length === 0
  return (
    <Page
      title="Collections"
      lead="Documents live in collections. Answers are written from the documents that a search finds there."
      actions={
        !empty && (
          <a class="button primary" href={to(['import'])}>
            <Icon name="upload" />
            Import files
          </a>
        )
      }
    >
      {list.loading && <Loading />}
      {list.error && <Problem error={list.error} retry={list.reload} />}
      {empty && (
        <Empty icon="collections" title="No collections yet">
          <p>Import a folder, or a few files. Parley makes the collection, its schema and its vectors.</p>
          <a class="button primary" href={to(['import'])}>
            <Icon name="upload" />
            Import files
          </a>
        </Empty>
      )}
      {list.data && !empty && (
        <ul class="cards">
          {byUse(list.data).map((each) => (
            <li key={each.name} class="item">
              <div class="item-main">
                <a class="item-name" href={to(['collections', each.name])}>
                  {each.name}
                </a>
                <p class="soft">
                  {many(each.num_documents, 'document')} · {many(each.fields.length, 'field')} · made{' '}
                  {ago(each.created_at * 1_000)}
                </p>
              </div>
              {vectorField(each) ? (
                <EmbeddingState collection={each} />
              ) : (
                <span class="badge">{isHistory(each) ? 'conversations' : 'words only'}</span>
              )}
              <button
                type="button"
                class="tool"
                aria-label={`Delete the collection ${each.name}`}
                title="Delete"
                onClick={() => setRemoving(each)}
              >
                <Icon name="bin" />
              </button>
            </li>
          ))}
        </ul>
      )}
      {removing && (
        <Confirm
          title={`Delete ${removing.name}?`}
          action="Delete the collection"
          run={async () => {
            await send('DELETE', pathOf(removing.name))
            list.reload()
          }}
          close={() => setRemoving(undefined)}
        >
          <p>
            {many(removing.num_documents, 'document')} and their vectors are deleted for good. Answers that
            were written from them stay.
          </p>
        </Confirm>
      )}
    </Page>
  )
}

/** Where conversations are kept comes last. */
const byUse = (collections: Collection[]): Collection[] =>
  collections.toSorted((a, b) => Number(isHistory(a)) - Number(isHistory(b)))

const isHistory = ({ fields }: Collection): boolean =>
  ['conversation_id', 'model_id', 'role', 'message'].every((name) =>
    fields.some((field) => field.name === name),
  )
