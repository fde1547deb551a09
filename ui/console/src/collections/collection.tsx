/** One collection. */
import { useEffect } from 'preact/hooks'
import { to } from '../address'
import { read, useLoaded } from '../api'
import { many } from '../parts/format'
import { Icon } from '../parts/icon'
import { Page } from '../parts/page'
import { Empty, Loading, Problem } from '../parts/states'
import { Tabs } from '../parts/tabs'
import { Documents } from './documents'
import { EmbeddingState } from './embedding-state'
import { Schema } from './schema'
import { Search } from './search'
import { type Collection, pathOf, vectorField } from './wire'

const LOOK_MS = 2_000
const TABS = ['search', 'documents', 'schema']

export function CollectionPage({ name, tab }: { name: string; tab: string }) {
  const loaded = useLoaded(`collection ${name}`, (signal) => read<Collection>(pathOf(name), signal))
  const { data, error, set } = loaded
  const isPending = (data?.pending_embeddings ?? 0) > 0
  useEffect(() => {
    if (!isPending) return
    const timer = setInterval(() => read<Collection>(pathOf(name)).then(set, () => {}), LOOK_MS)
    return () => clearInterval(timer)
  }, [isPending, name, set])
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
            <a class="button" href={to(['import'], { into: name })}>
              <Icon name="upload" />
              Import files
            </a>
            <a class="button primary" href={`./?collection=${encodeURIComponent(name)}`}>
              <Icon name="chat" />
              Ask
            </a>
          </>
        )
      }
    >
      <Tabs
        label="Views of the collection"
        current={tab}
        tabs={[
          { id: 'search', title: 'Search', href: to(['collections', name]) },
          { id: 'documents', title: 'Documents', href: to(['collections', name, 'documents']) },
          { id: 'schema', title: 'Schema', href: to(['collections', name, 'schema']) },
        ]}
      />
      {loaded.loading && <Loading />}
      {error && <Problem error={error} retry={loaded.reload} />}
      {data && tab === 'search' && <Search collection={data} />}
      {data && tab === 'documents' && <Documents collection={data} changed={loaded.reload} />}
      {data && tab === 'schema' && <Schema collection={data} />}
      {!TABS.includes(tab) && (
        <Empty icon="search" title="There is nothing at this address">
          <a class="button" href={to(['collections', name])}>
            Search {name}
          </a>
        </Empty>
      )}
    </Page>
  )
}
