/**
 * Question sets: questions whose answers are known, which are asked on a schedule, after imports, and on request. A set and each of its
 * runs are rows of D1's `resources`. A run keeps what was answered, not whether that is right: readers judge it by the words and
 * documents that the set expects (scripts/parley/eval/outcomes.mjs), as they judge answers that they asked for themselves.
 */
import * as v from 'valibot'
import { deleteResource, findResource, listResources, putResource, replaceResource } from '../db/resources'
import { ApiError, badRequest } from '../errors'
import { once } from '../lib/once'
import { readStored } from '../lib/stored-json'

const SET = 'question_set'
const RUN = 'question_run'

/** Sets of a deployment, and runs of a set that are kept. */
const MOST_SETS = 50
const MOST_RUNS = 20
/** Characters of a set, and of a run: a row of D1 holds 2 MB of UTF-8. */
const LONGEST_SET = 200_000
const LONGEST_RUN = 1_000_000
const HOUR_MS = 3_600_000

const Question = once(() =>
  v.object({
    question: v.string(),
    /** ids of documents that answer it, or of the pages that they are passages of */
    relevant: v.exactOptional(v.array(v.string())),
    /** what a right answer says, or several such answers */
    answer: v.exactOptional(v.union([v.string(), v.array(v.string())])),
    /** whether no document answers it */
    unanswerable: v.exactOptional(v.boolean()),
  }),
)
export type Question = v.InferOutput<ReturnType<typeof Question>>

/** Whom a run asks: an assistant, or collections by way of a conversation model, with search parameters. */
const Asks = once(() =>
  v.objectWithRest(
    {
      assistant: v.exactOptional(v.string()),
      model: v.exactOptional(v.string()),
      collections: v.exactOptional(v.array(v.string())),
      searches: v.exactOptional(v.array(v.objectWithRest({ collection: v.string() }, v.unknown()))),
    },
    v.unknown(),
  ),
)
export type Asks = v.InferOutput<ReturnType<typeof Asks>>

const settings = once(() => ({
  questions: v.array(Question()),
  asks: Asks(),
  /** hours from the beginning of a run to that of the next; absent: none follows by itself */
  every_hours: v.exactOptional(v.number()),
  /** whether it is asked after an import into one of its collections */
  after_import: v.exactOptional(v.boolean()),
  /** the conversation model that judges answers, beside what their words say */
  judge: v.exactOptional(v.string()),
}))

const Stored = once(() =>
  v.object({
    ...settings(),
    /** unix milliseconds; absent: nothing is to come */
    next_run_at: v.exactOptional(v.number()),
    /** the run that goes on: its id */
    running: v.exactOptional(v.string()),
    /** until when somebody asks its questions, in unix milliseconds */
    busy_until: v.exactOptional(v.number()),
    /** the latest first */
    runs: v.array(v.object({ id: v.string(), started_at: v.number() })),
  }),
)
type Stored = v.InferOutput<ReturnType<typeof Stored>>
type SetSettings = Pick<Stored, 'questions' | 'asks' | 'every_hours' | 'after_import' | 'judge'>
export type QuestionSet = Stored & { name: string }

/** What became of a question. `found`: ids by search, best first. */
const Answered = once(() =>
  v.object({
    answer: v.string(),
    cited: v.array(v.string()),
    found: v.array(v.array(v.string())),
    ms: v.number(),
    declined: v.exactOptional(v.boolean()),
    warned: v.exactOptional(v.boolean()),
    usage: v.exactOptional(
      v.object({ model: v.string(), input_tokens: v.number(), output_tokens: v.number() }),
    ),
    conversation_id: v.exactOptional(v.string()),
    turn: v.exactOptional(v.number()),
    error: v.exactOptional(v.string()),
    /** what the judge says */
    judged: v.exactOptional(
      v.object({ verdict: v.picklist(['right', 'partly', 'wrong']), reason: v.string() }),
    ),
  }),
)
export type Answered = v.InferOutput<ReturnType<typeof Answered>>

const Run = once(() =>
  v.object({
    /** unix milliseconds */
    started_at: v.number(),
    ended_at: v.exactOptional(v.number()),
    asks: Asks(),
    /** those of the set when the run began */
    questions: v.array(Question()),
    judge: v.exactOptional(v.string()),
    /** in the order of the questions; fewer while the run goes on */
    answers: v.array(Answered()),
  }),
)
export type Run = v.InferOutput<ReturnType<typeof Run>> & { id: string }

const setIn = ({ id, body }: { id: string; body: string }): QuestionSet => ({
  ...readStored(Stored(), body),
  name: id,
})

export const listSets = async (env: Cloudflare.Env): Promise<QuestionSet[]> =>
  (await listResources(env.DB, SET)).map(setIn)

export async function findSet(env: Cloudflare.Env, name: string): Promise<QuestionSet | undefined> {
  const row = await findResource(env.DB, SET, name)
  return row && setIn(row)
}

/** @throws ApiError 404 */
export async function getSet(env: Cloudflare.Env, name: string): Promise<QuestionSet> {
  const set = await findSet(env, name)
  if (!set) throw new ApiError(404, `There is no question set \`${name}\`.`)
  return set
}

/** Stores a set, or changes the one of its name. A run that goes on keeps its questions. @throws ApiError 400 */
export async function putSet(env: Cloudflare.Env, name: string, given: SetSettings): Promise<QuestionSet> {
  const all = await listSets(env)
  const before = all.find((each) => each.name === name)
  if (!before && all.length >= MOST_SETS)
    throw badRequest(`There are ${MOST_SETS} question sets already. Delete one first.`)
  const { running, busy_until, runs = [] } = before ?? {}
  const stored: Stored = {
    ...given,
    runs,
    ...(given.every_hours !== undefined && { next_run_at: Date.now() + given.every_hours * HOUR_MS }),
    ...(running !== undefined && { running }),
    ...(busy_until !== undefined && { busy_until }),
  }
  const body = JSON.stringify(stored)
  if (body.length > LONGEST_SET)
    throw badRequest(`The set is too long: ${LONGEST_SET} characters are kept. Make two of it.`)
  await putResource(env.DB, { kind: SET, id: name, body })
  return { ...stored, name }
}

/** Deletes a set and its runs. @throws ApiError 404 @returns the set that it was */
export async function deleteSet(env: Cloudflare.Env, name: string): Promise<QuestionSet> {
  const set = await getSet(env, name)
  const db = env.DB
  await deleteResource(db, SET, name)
  for (const { id } of set.runs) await deleteResource(db, RUN, `${name}/${id}`)
  return set
}

/** Attempts to change a set that others change, too. */
const MOST_TRIES = 5

/**
 * Changes a set as it is now, so that of two who begin a run one does.
 * @param change of what is stored; undefined: none
 * @returns the set, if it was changed. A set that is gone does not come back
 */
export async function changeSet(
  env: Cloudflare.Env,
  name: string,
  change: (set: QuestionSet) => QuestionSet | undefined,
): Promise<QuestionSet | undefined> {
  const db = env.DB
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const row = await findResource(db, SET, name)
    const changed = row && change(setIn(row))
    if (!row || !changed) return undefined
    const { name: _, ...stored } = changed
    const body = JSON.stringify(stored)
    if ((await replaceResource(db, row, { kind: SET, id: name, body })) === 'done') return changed
  }
  throw new Error(`The question set ${name} is changed by others all the time.`)
}

/** A set whose run, if it is this one, has ended. */
export function withoutRun(set: QuestionSet, id: string): QuestionSet | undefined {
  const { running, busy_until: _, ...rest } = set
  return running === id ? rest : undefined
}

/** @throws ApiError 404 */
export async function getRun(env: Cloudflare.Env, name: string, id: string): Promise<Run> {
  const row = await findResource(env.DB, RUN, `${name}/${id}`)
  if (!row) throw new ApiError(404, `The question set \`${name}\` has no run \`${id}\`.`)
  return { ...readStored(Run(), row.body), id }
}

/** What makes a run too long for a row are ids of documents: then it is kept without those that were found. */
export async function writeRun(env: Cloudflare.Env, name: string, { id, ...run }: Run): Promise<void> {
  const whole = JSON.stringify(run)
  const withoutFound = () =>
    JSON.stringify({ ...run, answers: run.answers.map((each) => ({ ...each, found: [] })) })
  const body = whole.length > LONGEST_RUN ? withoutFound() : whole
  await putResource(env.DB, { kind: RUN, id: `${name}/${id}`, body })
}

/** Ends a run before all of its questions are asked. What was answered stays. @throws ApiError 404 */
export async function endRun(env: Cloudflare.Env, name: string, id: string): Promise<Run> {
  const run = await getRun(env, name, id)
  if (!(await changeSet(env, name, (set) => withoutRun(set, id)))) return run
  const ended = { ...run, ended_at: Date.now() }
  await writeRun(env, name, ended)
  return ended
}

/**
 * Begins a run. Runs beyond the latest ones are deleted.
 * @param asks whom; absent: whom the set asks
 * @throws ApiError 409 while one goes on
 */
export async function beginRun(env: Cloudflare.Env, set: QuestionSet, asks = set.asks): Promise<Run> {
  const { name, questions, judge } = set
  const now = Date.now()
  const id = crypto.randomUUID()
  const run: Run = {
    id,
    started_at: now,
    asks,
    questions,
    ...(judge !== undefined && { judge }),
    answers: [],
  }
  await writeRun(env, name, run)
  const begun = await changeSet(env, name, ({ next_run_at: _, ...other }) => {
    if (other.running !== undefined) return undefined
    const next = other.every_hours !== undefined && { next_run_at: now + other.every_hours * HOUR_MS }
    return { ...other, ...next, running: id, runs: [{ id, started_at: now }, ...other.runs] }
  })
  const old = begun ? begun.runs.slice(MOST_RUNS) : [{ id }]
  for (const { id: gone } of old) await deleteResource(env.DB, RUN, `${name}/${gone}`)
  if (!begun) throw new ApiError(409, `A run of \`${name}\` goes on. Wait for its end.`)
  if (old.length > 0) await changeSet(env, name, (all) => ({ ...all, runs: all.runs.slice(0, MOST_RUNS) }))
  return run
}
