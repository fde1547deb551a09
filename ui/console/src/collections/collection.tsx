/** One collection. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { to } from '../address'
import { Button } from '../parts/button'
import { many } from '../parts/format'
import { Page, Tabs } from '../parts/page'
import { Empty, Shown } from '../parts/states'
import { Documents } from './documents'
import { EditSchema, Schema } from './schema'
import { Search } from './search'
import { ConnectDialog, EmbeddingFault, EmbeddingState, EngineLine, Nodes, useCollection } from './state'
import { type Collection, hasDocuments, vectorField } from './wire'

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

export function CollectionPage({ name, tab }: { name: string; tab: string }) {
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
            <Button
              label="Ask"
              kind="primary"
              icon="chat"
              href={`./?collection=${encodeURIComponent(name)}`}
            />
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
