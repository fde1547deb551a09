/** Files that are dropped anywhere in the console: it opens the import, which takes them. */
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { go, place, to } from '../address'
import type { Chosen } from './files'

/** What was dropped and waits for the import to take it. */
export const dropped = signal<(() => Promise<Chosen>) | undefined>(undefined)

/** Whether files are being held over the page. */
export const isOver = signal(false)

/** What reads files is heavy: it is loaded when there are some. */
export const files = () => import('./files')

const holdsFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') ?? false

function take(event: DragEvent): void {
  isOver.value = false
  // A dialog may have taken them already.
  if (event.defaultPrevented || !holdsFiles(event)) return
  event.preventDefault()
  // The event's data is gone once its handlers have returned.
  const entries = Array.from(event.dataTransfer?.items ?? []).flatMap((item) => {
    const entry = item.webkitGetAsEntry()
    return entry ? [entry] : []
  })
  const given = Array.from(event.dataTransfer?.files ?? [])
  if (entries.length > 0) dropped.value = async () => (await files()).ofDrop(entries)
  else if (given.length > 0) dropped.value = async () => (await files()).ofFiles(given)
  else return
  const { page, rest } = place.peek()
  if (page === 'import') return
  // On the page of a collection they are meant for it, and the first run goes on after the import.
  const into = page === 'collections' ? rest[0] : undefined
  go(to(['import'], { into, next: page === 'start' ? page : undefined }))
}

function over(event: DragEvent): void {
  if (event.defaultPrevented || !holdsFiles(event)) return
  event.preventDefault()
  isOver.value = true
}

function leave(event: DragEvent): void {
  if (event.relatedTarget === null) isOver.value = false
}

/** Has the whole page take files. */
export function useDrop(): void {
  useEffect(() => {
    const leaving = new AbortController()
    const { signal } = leaving
    addEventListener('dragover', over, { signal })
    addEventListener('dragleave', leave, { signal })
    addEventListener('drop', take, { signal })
    return () => leaving.abort()
  }, [])
}
