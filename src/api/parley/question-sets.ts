/** Stores question sets, has them asked, and shows what was answered. */
import { waitUntil } from 'cloudflare:workers'
import { requireCollections } from '../../auth/admit'
import { ApiError, logFailure } from '../../errors'
import { goOn, imported } from '../../question-sets/run'
import {
  type Asks,
  beginRun,
  deleteSet,
  endRun,
  getRun,
  getSet,
  listSets,
  putSet,
  type QuestionSet,
} from '../../question-sets/set'
import { findAssistant } from '../../registry/assistants'
import { findModel } from '../../registry/models'
import { json } from '../http/deliver'
import type { operations } from './operations'
import type { Served } from './route'

type Serving<Name extends keyof typeof operations> = Served<(typeof operations)[Name]>
type Caller = Pick<Serving<'getQuestionSet'>, 'env' | 'access' | 'record'>

/** What a page of sets need not know. */
function shown({ busy_until: _, ...set }: QuestionSet) {
  return set
}

/**
 * A set is asked with the server's own rights: its searches may join any collection. So a key needs the right to all of them, and a
 * name that no collection has stands for those.
 * @throws ApiError 401
 */
const requireAll = ({ access, record }: Caller): void =>
  requireCollections(access, record.action!, [EVERY_COLLECTION], record)

const EVERY_COLLECTION = '*'

/** @throws ApiError 400 for an assistant or a model that is not there */
async function requirePresent(env: Cloudflare.Env, { assistant, model }: Asks): Promise<void> {
  if (assistant === undefined) await requireModel(env, '`asks.model`', model)
  else if (!(await findAssistant(env, assistant)))
    throw new ApiError(400, `\`asks.assistant\`: There is no assistant \`${assistant}\`.`)
}

async function requireModel(env: Cloudflare.Env, place: string, id = ''): Promise<void> {
  if (!(await findModel(env, id)))
    throw new ApiError(400, `${place}: There is no conversation model \`${id}\`.`)
}

export async function list(serving: Serving<'listQuestionSets'>): Promise<Response> {
  requireAll(serving)
  return json({ sets: (await listSets(serving.env)).map(shown) })
}

export async function put(serving: Serving<'putQuestionSet'>): Promise<Response> {
  requireAll(serving)
  const { env, path, body } = serving
  await requirePresent(env, body.asks)
  if (body.judge !== undefined) await requireModel(env, '`judge`', body.judge)
  return json(shown(await putSet(env, path.name, body)))
}

export async function get(serving: Serving<'getQuestionSet'>): Promise<Response> {
  requireAll(serving)
  return json(shown(await getSet(serving.env, serving.path.name)))
}

export async function remove(serving: Serving<'deleteQuestionSet'>): Promise<Response> {
  requireAll(serving)
  return json(shown(await deleteSet(serving.env, serving.path.name)))
}

/** Begins a run, and answers before its questions are answered. */
export async function begin(serving: Serving<'runQuestionSet'>): Promise<Response> {
  requireAll(serving)
  const { env, path, body } = serving
  const set = await getSet(env, path.name)
  if (body.asks) await requirePresent(env, body.asks)
  const run = await beginRun(env, set, body.asks)
  askOn(env, set.name)
  return json(run)
}

/** What is left when this ends, others go on with: readers of the run, and the cron. */
const askOn = (env: Cloudflare.Env, name: string): void =>
  waitUntil(goOn(env, name).catch((error) => logFailure('a run is left for the next minute', error)))

/** Goes on with a run, unless somebody does. */
export async function step(serving: Serving<'stepQuestionRun'>): Promise<Response> {
  requireAll(serving)
  const { env, path } = serving
  const run = await getRun(env, path.name, path.id)
  if (run.ended_at === undefined) askOn(env, path.name)
  return json(run)
}

export async function readRun(serving: Serving<'getQuestionRun'>): Promise<Response> {
  requireAll(serving)
  return json(await getRun(serving.env, serving.path.name, serving.path.id))
}

/** Ends a run that goes on. */
export async function end(serving: Serving<'endQuestionRun'>): Promise<Response> {
  requireAll(serving)
  return json(await endRun(serving.env, serving.path.name, serving.path.id))
}

/** An import has ended: the sets that ask about its collection are due. */
export async function note(serving: Serving<'noteImport'>): Promise<Response> {
  const { env, access, record, body } = serving
  requireCollections(access, record.action!, [body.collection], record)
  return json({ sets: await imported(env, body.collection) })
}
