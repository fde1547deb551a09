/** Collections: the list of them, what is lost with one, and one with its documents, its search and its schema. */

import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { go, place, to, toAsk } from '../address'
import { mapped, useLoaded, useRead } from '../api'
import { loadChoices } from '../chat/choices'
import { Button } from '../parts/button'
import { ago, many } from '../parts/format'
import { ListPage } from '../parts/list'
import { Empty, Page, Shown, Tabs } from '../parts/page'
import { ConnectDialog } from './connect'
import { Documents } from './documents'
import { EditSchema, Schema } from './schema'
import { Search } from './search'
import { EmbeddingFault, EmbeddingState, EngineLine, Nodes, useCollection } from './state'
import { type Collection, hasDocuments, pathOf, vectorField } from './wire'

export default function Collections() {
  const [name, tab = 'search'] = place.value.rest
  return name === undefined ? <CollectionList /> : <CollectionPage key={name} name={name} tab={tab} />
}

function CollectionList() {
  const list = useRead<Collection[]>('/collections')
  return (
    <ListPage
      title="Collections"
      lead="Documents live in collections. Answers are written from the documents that a search finds there."
      list={mapped(list, byUse)}
      empty={{
        icon: 'collections',
        title: 'No collections yet',
        text: 'Drop a folder on this page, or choose one. Parley makes the collection, its schema and its vectors.',
      }}
      action={
        <>
          <Button label="Connect a cluster" icon="plus" href={to(['collections'], { connect: '1' })} />
          <Button label="Import files" kind="primary" icon="upload" href={to(['import'])} />
        </>
      }
      kind="collection"
      item={(each) => ({
        name: each.name,
        href: to(['collections', each.name]),
        about: aboutOf(each),
        path: pathOf(each.name),
        says: <Losses of={each} />,
        children: vectorField(each) ? (
          <EmbeddingState collection={each} />
        ) : (
          <span class="badge">{each.engine?.type ?? (isHistory(each) ? 'conversations' : 'words only')}</span>
        ),
      })}
    >
      {place.value.query.has('connect') && (
        <ConnectDialog
          close={(connected) => {
            // A link in the dialog leads away from the list.
            if (place.value.rest.length > 0) return
            go(to(['collections']), { replace: true })
            if (connected) list.reload()
          }}
        />
      )}
    </ListPage>
  )
}

/** An index of OpenSearch does not tell when it was made. */
const aboutOf = ({ num_documents, fields, created_at }: Collection): string =>
  [
    many(num_documents, 'document'),
    many(fields.length, 'field'),
    ...(created_at === undefined ? [] : [`created ${ago(created_at * 1_000)}`]),
  ].join(' · ')

/** Where conversations are kept comes last. */
const byUse = (collections: Collection[]): Collection[] =>
  collections.toSorted((a, b) => Number(isHistory(a)) - Number(isHistory(b)))

/** Names in a sentence. */
const listed = (names: readonly string[]): string => new Intl.ListFormat('en').format(names)

/** Where conversations are kept. */
const isHistory = ({ fields }: Pick<Collection, 'fields'>): boolean =>
  ['conversation_id', 'model_id', 'role', 'message'].every((name) =>
    fields.some((field) => field.name === name),
  )

/** What is lost with a collection: documents, and what needs it. */
function Losses({ of }: { of: Collection }) {
  const { data: { models = [], assistants = [] } = {} } = useLoaded(`losses ${of.name}`, loadChoices)
  const writers = models.filter(({ history_collection: name }) => name === of.name).map(({ id }) => id)
  const silent = assistants.filter(({ model }) => writers.includes(model)).map(({ name }) => name)
  const searchers = assistants.filter(
    ({ collections = [], searches = [] }) =>
      collections.includes(of.name) || searches.some(({ collection }) => collection === of.name),
  )
  return (
    <>
      <p>
        {of.engine
          ? 'Parley forgets the name. The documents stay in the cluster.'
          : isHistory(of)
            ? `${many(of.num_documents, 'message')} of conversations are deleted for good.`
            : `${many(of.num_documents, 'document')} and their vectors are deleted for good. Answers that were written from them stay.`}
      </p>
      {writers.length > 0 && (
        <p class="bad">
          Conversations with {listed(writers)} are kept here. Without it {listed([...writers, ...silent])}{' '}
          cannot answer, until you make it again under “Models”.
        </p>
      )}
      {searchers.length > 0 && (
        <p class="bad">
          Searched by {listed(searchers.map(({ name }) => name))}, which will find nothing in it.
        </p>
      )}
    </>
  )
}

// =============================================================================
// One collection.

const VIEWS: Record<string, (collection: Collection, changed: () => void) => ComponentChildren> = {
  search: (collection) => <Search collection={collection} />,
  documents: (collection, changed) => <Documents collection={collection} changed={changed} />,
  schema: (collection, changed) =>
    collection.engine ? (
      <Schema collection={collection} />
    ) : (
      <EditSchema collection={collection} changed={changed} />
    ),
}

function CollectionPage({ name, tab }: { name: string; tab: string }) {
  const loaded = useCollection(name)
  const { data } = loaded
  const [isConnecting, setConnecting] = useState(false)
  return (
    <Page
      title={name}
      up={{ title: 'Collections', href: to(['collections']) }}
      lead={
        data && (
          <>
            {many(data.num_documents, 'document')} {vectorField(data) && <EmbeddingState collection={data} />}
          </>
        )
      }
      actions={
        data && (
          <>
            {data.engine && (
              <Button label="Change nodes and credentials" icon="edit" onClick={() => setConnecting(true)} />
            )}
            {hasDocuments(data) && (
              <Button label="Import files" icon="upload" href={to(['import'], { into: name })} />
            )}
            <Button label="Ask" kind="primary" icon="chat" href={toAsk('collection', name)} />
          </>
        )
      }
    >
      {isConnecting && data && (
        <ConnectDialog
          of={data}
          close={(connected) => {
            setConnecting(false)
            if (connected) loaded.reload()
          }}
        />
      )}
      {data && <EmbeddingFault collection={data} />}
      {data?.engine && <EngineLine engine={data.engine} />}
      {(data?.engine || loaded.error?.status === 503) && <Nodes name={name} />}
      <Tabs
        label="Views of the collection"
        current={tab}
        tabs={[
          { id: 'search', title: 'Search', href: to(['collections', name]) },
          ...(data && !hasDocuments(data)
            ? []
            : [{ id: 'documents', title: 'Documents', href: to(['collections', name, 'documents']) }]),
          { id: 'schema', title: 'Schema', href: to(['collections', name, 'schema']) },
        ]}
      />
      {Object.hasOwn(VIEWS, tab) ? (
        <Shown of={loaded}>{(collection) => VIEWS[tab]?.(collection, loaded.reload)}</Shown>
      ) : (
        <Empty icon="search" title="There is nothing at this address">
          <Button label={`Search ${name}`} href={to(['collections', name])} />
        </Empty>
      )}
    </Page>
  )
}
