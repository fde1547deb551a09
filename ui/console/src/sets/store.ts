/** Question sets and their runs, kept in this browser (IndexedDB). */
import type { Outcome, Question } from '../../../../scripts/parley/eval/outcomes.mjs'
import type { ChatSettings } from '../chat/settings'

export interface Run {
  id: string
  /** milliseconds since 1970 */
  at: number
  settings: ChatSettings
  /** in the order of the questions; fewer while it runs, and where it was ended early */
  outcomes: Outcome[]
}

export interface QuestionSet {
  name: string
  questions: Question[]
  /** the latest first */
  runs: Run[]
}

const STORE = 'sets'

let opened: Promise<IDBDatabase> | undefined

const done = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })

async function store(mode: IDBTransactionMode): Promise<IDBObjectStore> {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open('parley', 1)
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: 'name' })
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
  return (await opened).transaction(STORE, mode).objectStore(STORE)
}

/** All sets, by name. */
export const listSets = async (): Promise<QuestionSet[]> => done((await store('readonly')).getAll())

/** @returns null if this browser keeps none of that name */
export const readSet = async (name: string): Promise<QuestionSet | null> =>
  (await done<QuestionSet | undefined>((await store('readonly')).get(name))) ?? null

export async function writeSet(set: QuestionSet): Promise<void> {
  await done((await store('readwrite')).put(set))
}

export async function deleteSet(name: string): Promise<void> {
  await done((await store('readwrite')).delete(name))
}

/** Changes a set in one transaction, so that a run and a page never undo each other's changes. */
export async function changeSet(name: string, change: (set: QuestionSet) => QuestionSet): Promise<void> {
  const sets = await store('readwrite')
  const set = await done<QuestionSet | undefined>(sets.get(name))
  if (set) await done(sets.put(change(set)))
}
