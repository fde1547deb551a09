/** Where the documents of a collection are, if not in Parley. */
import type { Engine } from './wire'

const NAMES: Record<string, string> = {
  typesense: 'Typesense',
  opensearch: 'OpenSearch',
  'ai-search': 'AI Search',
}

export function EngineLine({ engine }: { engine: Engine }) {
  const there = engine.collection ?? engine.index ?? engine.instance
  return (
    <p class="hint">
      Lives in {NAMES[engine.type] ?? engine.type}
      {there !== undefined && (
        <>
          {' '}
          as <code>{there}</code>
        </>
      )}
      {engine.nodes && engine.nodes.length > 0 && <>, at {engine.nodes.join(', ')}</>}.
      {engine.error && <> {engine.error}</>}
    </p>
  )
}
