/** What an import leaves to be told: faults, and vectors that are still being made. */
import { useEffect, useState } from 'preact/hooks'
import { read } from '../api'
import { EmbeddingFault } from '../collections/embedding-state'
import { type Collection, pathOf } from '../collections/wire'
import { count, many } from '../parts/format'

export interface Fault {
  /** the file, or the id of the document */
  source: string
  error: string
}

const SHOWN = 50
const LOOK_MS = 1_000

export function Faults({ title, faults }: { title: string; faults: Fault[] }) {
  if (faults.length === 0) return null
  return (
    <section class="panel-card">
      <h2>
        {title}: {count(faults.length)}
      </h2>
      <ul class="faults">
        {faults.slice(0, SHOWN).map(({ source, error }) => (
          <li key={source}>
            <code>{source}</code>
            <span class="bad">{error}</span>
          </li>
        ))}
      </ul>
      {faults.length > SHOWN && <p class="soft">And {many(faults.length - SHOWN, 'more', 'more')}.</p>}
    </section>
  )
}

/** Words are found at once, meaning when the vectors are there. */
export function Embedding({ collection }: { collection: string }) {
  const [pending, setPending] = useState<{ left: number; most: number; found?: Collection | undefined }>()
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>
    let isOver = false
    const look = async () => {
      const found = await read<Collection>(pathOf(collection)).catch(() => undefined)
      if (isOver) return
      const left = found?.pending_embeddings ?? 0
      setPending((before) => ({ left, most: Math.max(left, before?.most ?? 0), found }))
      if (left > 0) timer = setTimeout(look, LOOK_MS)
    }
    look()
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [collection])
  if (!pending) return null
  const fault = pending.found && <EmbeddingFault collection={pending.found} />
  if (pending.most === 0) return fault
  return (
    <div class="panel-card" role="status">
      <p>
        {pending.left > 0
          ? `Vectors are being made: ${count(pending.most - pending.left)} of ${count(pending.most)}. Words are found already.`
          : pending.found?.refused_embeddings
            ? 'All other vectors are made: those documents are found by meaning too.'
            : 'All vectors are made: documents are found by meaning too.'}
      </p>
      {fault}
      <progress max={pending.most} value={pending.most - pending.left} aria-label="Vectors made" />
    </div>
  )
}
