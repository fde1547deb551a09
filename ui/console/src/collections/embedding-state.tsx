/** Whether all documents of a collection can be found by meaning, and why some cannot. */
import { count, many } from '../parts/format'
import type { Collection } from './wire'

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
  const {
    refused_embeddings: refused = 0,
    pending_embeddings: pending = 0,
    embedding_error: error,
  } = collection
  const { replacing_embeddings: replacing = [] } = collection
  return (
    <>
      {replacing.map(({ name, model_name: model, pending: left }) => (
        <p key={name} class="notice" role="status">
          The vectors of {name} are made anew by {model}: {count(left)} to go. Until then the old ones are
          searched.
        </p>
      ))}
      {error !== undefined && (
        <div class="notice bad" role="alert">
          <p>
            {error}
            {/[.!?]$/.test(error) ? ' ' : '. '}
            {refused > 0 &&
              `${many(refused, 'document')} can be found by words only. Shorten or correct the text. `}
            {pending > 0 &&
              'Parley keeps trying. Until then documents without a vector are found by words only.'}
          </p>
        </div>
      )}
    </>
  )
}
