/** Question sets and their runs, kept in this browser (IndexedDB), and the run that goes on. */
import { signal } from '@preact/signals'
import { type Outcome, outcomeOf, type Question } from '../../../../scripts/parley/eval/outcomes.mjs'
import { randomId } from '../../../widget/src/storage'
import { Refusal, send } from '../api'
import { type ChatSettings, requestOf } from '../chat/settings'

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

// =============================================================================
// The run that goes on. It goes on while other pages are shown, and each outcome is kept as soon as it is there.

interface Progress {
  set: string
  run: string
  done: number
  of: number
}

/** undefined while nothing runs */
export const running = signal<Progress | undefined>(undefined)
/** counts what was kept: pages look again */
export const kept = signal(0)

let stopped = false

/** Ends the run after the question that is being asked. */
export function stopRun(): void {
  stopped = true
}

type Answered = Exclude<Parameters<typeof outcomeOf>[1], { error: string }>

/** Whose questions those of sets are: nobody's own, and no visitor's. */
export const TESTER = { 'x-typesense-user-id': 'question-sets', 'x-parley-visitor': randomId() + randomId() }

async function ask(question: string, settings: ChatSettings): Promise<Answered | { error: string }> {
  const { path, body } = requestOf({ ...settings, followups: false })
  try {
    return await send<Answered>('POST', path, { question, ...body }, TESTER)
  } catch (error) {
    if (error instanceof Refusal && error.status !== 0) return { error: error.message }
    throw error
  }
}

/**
 * Asks all questions of a set, one after another, each in a conversation of its own.
 * @returns the run
 * @throws Refusal where the server is not reached; what was answered is kept
 */
export async function runSet({ name, questions }: QuestionSet, settings: ChatSettings): Promise<Run> {
  const run: Run = { id: crypto.randomUUID(), at: Date.now(), settings, outcomes: [] }
  stopped = false
  try {
    await changeSet(name, (set) => ({ ...set, runs: [run, ...set.runs] }))
    for (const [index, each] of questions.entries()) {
      if (stopped) break
      running.value = { set: name, run: run.id, done: index, of: questions.length }
      const began = performance.now()
      const turn = await ask(each.question, settings)
      run.outcomes.push(outcomeOf(each, turn, Math.round(performance.now() - began)))
      await changeSet(name, (set) => ({
        ...set,
        runs: set.runs.map((other) => (other.id === run.id ? run : other)),
      }))
      kept.value += 1
    }
    return run
  } finally {
    running.value = undefined
    kept.value += 1
  }
}
