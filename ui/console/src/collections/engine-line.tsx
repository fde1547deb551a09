/** Where the documents of a collection are, if not in Parley. */
import { engineName } from '../parts/engine-name'
import type { Engine } from './wire'

export function EngineLine({ engine }: { engine: Engine }) {
  const there = engine.collection ?? engine.index ?? engine.instance
  return (
    <p class="hint">
      Lives in {engineName(engine.type)}
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
