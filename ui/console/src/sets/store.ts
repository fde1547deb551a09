/** Question sets and their runs, as the server keeps them, and the run that is waited for. */

import { signal } from '@preact/signals'
import type { InferOutput } from 'valibot'
import { type Outcome, outcomeOf } from '../../../../scripts/parley/eval/outcomes.mjs'
import type * as responses from '../../../../src/api/parley/response-schemas'
import { randomId } from '../../../widget/src/storage'
import { read, send } from '../api'
import { loadChoices, possible } from '../chat/choices'
import { type ChatSettings, chosen, DIRECT, requestOf, settings } from '../chat/settings'

/** Whom a set asks: an assistant, or what the body of `POST /conversations` has besides its question. */
interface Asks {
  assistant?: string
  model?: string
  collections?: string[]
  searches?: { collection: string; query_by?: string }[]
  per_page?: number
  filter_by?: string
}

/** A set. `asks` is absent where it asks what the chat asks now. */
export type QuestionSet = Omit<InferOutput<typeof responses.QuestionSet>, 'asks'> & { asks?: Asks }

type StoredRun = Omit<InferOutput<typeof responses.QuestionRun>, 'asks'> & { asks: Asks }
/** What a model says of an answer. */
export type Judged = NonNullable<StoredRun['answers'][number]['judged']>

export interface Run {
  id: string
  /** milliseconds since 1970 */
  at: number
  settings: ChatSettings
  /** in the order of the questions; fewer while it runs, and where it was ended early */
  outcomes: (Outcome & { judged?: Judged })[]
}

export const pathOf = (name: string): string => `/question_sets/${encodeURIComponent(name)}`

/** All sets, the oldest first. */
export const listSets = async (): Promise<QuestionSet[]> =>
  (await read<{ sets: QuestionSet[] }>('/question_sets')).sets

/** @returns null where there is none of that name */
export const readSet = async (name: string): Promise<QuestionSet | null> =>
  (await listSets()).find((set) => set.name === name) ?? null

/** Stores a set, or changes the one of its name. */
export async function writeSet(set: QuestionSet): Promise<void> {
  const { name, questions, asks = asksOf(await usual()), every_hours, after_import, judge } = set
  await send('PUT', pathOf(name), { questions, asks, every_hours, after_import, judge })
}

/** What the chat asks now; what there is, where nobody has chosen. */
async function usual(): Promise<ChatSettings> {
  const now = settings.peek()
  return chosen ? now : possible(now, await loadChoices())
}

/** Changes a set, if it is still there. */
export async function changeSet(name: string, change: (set: QuestionSet) => QuestionSet): Promise<void> {
  const set = await readSet(name)
  if (set) await writeSet(change(set))
}

/** Whom these settings ask, as a set has it. */
export function asksOf(asked: ChatSettings): Asks {
  if (asked.assistant !== '') return { assistant: asked.assistant }
  return requestOf({ ...asked, followups: false }).body as Asks
}

/** Whom a set or a run asks, as the chat's settings have it. */
export function settingsOf(asks: Asks): ChatSettings {
  const { assistant, model = '', collections, searches, per_page = '', filter_by = '' } = asks
  if (assistant !== undefined) return { ...DIRECT, assistant }
  const [first] = searches ?? []
  return {
    ...DIRECT,
    model,
    collection: collections?.[0] ?? first?.collection ?? '',
    fields: first?.query_by ?? '',
    limit: String(per_page),
    filter: filter_by,
  }
}

/** @returns null where there is no such run */
export async function readRun(name: string, id: string): Promise<Run | null> {
  const set = await readSet(name)
  if (!set?.runs.some((run) => run.id === id)) return null
  return runOf(await read<StoredRun>(`${pathOf(name)}/runs/${encodeURIComponent(id)}`))
}

/** A run with what its answers came to. */
const runOf = ({ id, started_at: at, asks, questions, answers }: StoredRun): Run => ({
  id,
  at,
  settings: settingsOf(asks),
  outcomes: answers.map(({ cited, found, ms, error, judged, ...answered }, index) => {
    const turn = {
      ...answered,
      citations: cited.map((document_id) => ({ document_id })),
      results: found.map((ids) => ({ hits: ids.map((document) => ({ document: { id: document } })) })),
    }
    const outcome = outcomeOf(questions[index]!, error === undefined ? turn : { error }, ms)
    return { ...outcome, ...(judged && { judged }) }
  }),
})

// =============================================================================
// The run that is waited for. It goes on while other pages are shown, and when the browser is closed.

/** How often it is looked at, in milliseconds. */
const LOOK_MS = 1_000

interface Progress {
  set: string
  run: string
  done: number
  of: number
}

/** undefined while none is waited for */
export const running = signal<Progress | undefined>(undefined)
/** counts the runs that have ended: pages look again */
export const kept = signal(0)

/** Ends the run that goes on after the questions that are being asked. */
export async function stopRun(): Promise<void> {
  const { set, run } = running.peek() ?? {}
  if (set !== undefined && run !== undefined) await send('POST', `${pathOf(set)}/runs/${run}/end`)
}

/** Whose questions those of sets are: nobody's own, and no visitor's. */
export const TESTER = { 'x-typesense-user-id': 'question-sets', 'x-parley-visitor': randomId() + randomId() }

/** Asks all questions of a set. @returns when the run has ended @throws Refusal */
export async function runSet({ name }: QuestionSet, asked: ChatSettings): Promise<void> {
  const run = await send<StoredRun>('POST', `${pathOf(name)}/runs`, { asks: asksOf(asked) })
  await waitFor(name, run.id)
}

/** Waits for the end of a run. @throws Refusal where the server is not reached; the run goes on */
export async function waitFor(name: string, id: string): Promise<void> {
  if (running.peek()?.run === id) return
  try {
    for (;;) {
      const { ended_at, answers, questions } = await send<StoredRun>(
        'POST',
        `${pathOf(name)}/runs/${id}/step`,
      )
      if (ended_at !== undefined) return
      running.value = { set: name, run: id, done: answers.length, of: questions.length }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
  } finally {
    running.value = undefined
    kept.value += 1
  }
}
