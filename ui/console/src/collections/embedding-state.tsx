/** Whether all documents of a collection can be found by meaning. */
import { count } from '../parts/format'
import type { Collection } from './wire'

export function EmbeddingState({ collection }: { collection: Collection }) {
  const { pending_embeddings: pending = 0 } = collection
  return pending === 0 ? (
    <span class="badge good">words and meaning</span>
  ) : (
    <span class="badge warn" role="status">
      {count(pending)} vectors to make
    </span>
  )
}
