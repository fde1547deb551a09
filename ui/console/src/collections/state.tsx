/** How a collection is: where its documents live, how its cluster answers or is connected again, and whether all can be found by meaning. */
import { useEffect } from 'preact/hooks'
import { type Loaded, read, useRead } from '../api'
import { Button } from '../parts/button'
import { count, duration, engineName, many } from '../parts/format'
import { Notice, Shown } from '../parts/page'
import { type Collection, type Engine, pathOf } from './wire'

const LOOK_MS = 2_000

/** A collection, read again while vectors of it are made. */
export function useCollection(name: string): Loaded<Collection> {
  const path = pathOf(name)
  const loaded = useRead<Collection>(path)
  const { data, set } = loaded
  const isPending = (data?.pending_embeddings ?? 0) > 0 || data?.replacing_embeddings !== undefined
  useEffect(() => {
    if (!isPending) return
    const timer = setInterval(() => read<Collection>(path).then(set, () => {}), LOOK_MS)
    return () => clearInterval(timer)
  }, [isPending, path, set])
  return loaded
}

export function EngineLine({ engine }: { engine: Engine }) {
  const there = engine.collection ?? engine.index ?? engine.instance
  return (
    <p class="hint">
      Lives in {engineName(engine.type)}
      {there !== undefined && [' as ', <code key="there">{there}</code>]}
      {engine.nodes && engine.nodes.length > 0 && <>, at {engine.nodes.join(', ')}</>}.
      {engine.error && <> {engine.error}</>}
    </p>
  )
}

interface NodeHealth {
  url: string
  answers: boolean
  took_ms: number
  error?: string
}

/** How the nodes of a collection's cluster answer. */
export function Nodes({ name }: { name: string }) {
  const loaded = useRead<{ nodes: NodeHealth[] }>(`${pathOf(name)}/nodes`)
  const nodes = loaded.data?.nodes ?? []
  if (loaded.data && nodes.length === 0) return null
  const down = nodes.filter(({ answers }) => !answers).length
  return (
    <section class="nodes" aria-label="Nodes of the cluster">
      <Shown of={loaded} label="Asking the nodes">
        {() => (
          <details open={down > 0}>
            <summary>
              {down === 0 ? (
                <span class="badge good">
                  {nodes.length === 1 ? 'The node answers' : `All ${nodes.length} nodes answer`}
                </span>
              ) : (
                <span class="badge error">
                  {down} of {many(nodes.length, 'node')} {down === 1 ? 'does' : 'do'} not answer
                </span>
              )}
            </summary>
            <ul>
              {nodes.map(({ url, answers, took_ms, error }) => (
                <li key={url}>
                  <span class="cut">{url}</span>
                  <span class={answers ? 'soft' : 'bad'}>{answers ? duration(took_ms) : error}</span>
                </li>
              ))}
            </ul>
            <Button label="Ask again" icon="again" onClick={loaded.reload} />
          </details>
        )}
      </Shown>
    </section>
  )
}

/** Whether all documents of a collection can be found by meaning, and why some cannot. */
export function EmbeddingState({ collection }: { collection: Collection }) {
  const {
    pending_embeddings: pending = 0,
    refused_embeddings: refused = 0,
    embedding_error: error,
  } = collection
  const isStuck = pending > 0 && error !== undefined
  return (
    <>
      {pending > 0 && (
        <span class="badge warn" role="status">
          {count(pending)} vectors to make{isStuck && ', stuck'}
        </span>
      )}
      {refused > 0 && <span class="badge warn">{many(refused, 'document')} refused by the model</span>}
      {pending === 0 && refused === 0 && <span class="badge good">words and meaning</span>}
    </>
  )
}

/** What an embedding model says against the documents of a collection, and what to do. */
export function EmbeddingFault({ collection }: { collection: Collection }) {
  const { refused_embeddings: refused = 0, pending_embeddings: pending = 0 } = collection
  const { replacing_embeddings: replacing = [], embedding_error: error } = collection
  return (
    <>
      {replacing.map(({ name, model_name: model, pending: left }) => (
        <p key={name} class="notice line" role="status">
          The vectors of {name} are made anew by {model}: {count(left)} to go. Until then the old ones are
          searched.
        </p>
      ))}
      {error !== undefined && (
        <Notice>
          <p>
            {error}
            {/[.!?]$/.test(error) ? ' ' : '. '}
            {refused > 0 &&
              `${many(refused, 'document')} can be found by words only. Shorten or correct the text. `}
            {pending > 0 &&
              'Parley keeps trying. Until then documents without a vector are found by words only.'}
          </p>
        </Notice>
      )}
    </>
  )
}
