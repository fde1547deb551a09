/** Stores question sets, has them asked, and shows what was answered. */
import { waitUntil } from 'cloudflare:workers'
import { requireCollections } from '../../auth/admit'
import { ApiError, logFailure } from '../../errors'
import { collectionsOf, goOn, imported } from '../../question-sets/run'
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
 * A set is asked with the server's own rights, so whoever stores it or begins a run needs the right to its collections by name.
 * @throws ApiError 400 for an assistant or a model that is not there, 401
 */
async function requireOwn({ env, access, record }: Caller, asks: Asks): Promise<void> {
  const { assistant, model } = asks
  if (assistant !== undefined && !(await findAssistant(env, assistant)))
    throw new ApiError(400, `\`asks.assistant\`: There is no assistant \`${assistant}\`.`)
  if (assistant === undefined) await requireModel(env, '`asks.model`', model)
  requireCollections(access, record.action!, await collectionsOf(env, asks), record)
}

async function requireModel(env: Cloudflare.Env, place: string, id = ''): Promise<void> {
  if (!(await findModel(env, id)))
    throw new ApiError(400, `${place}: There is no conversation model \`${id}\`.`)
}

export const list = async ({ env }: Serving<'listQuestionSets'>): Promise<Response> =>
  json({ sets: (await listSets(env)).map(shown) })

export async function put(serving: Serving<'putQuestionSet'>): Promise<Response> {
  const { env, path, body } = serving
  const before = (await listSets(env)).find(({ name }) => name === path.name)
  if (before) await requireOwnCollections(serving, before.asks)
  await requireOwn(serving, body.asks)
  if (body.judge !== undefined) await requireModel(env, '`judge`', body.judge)
  return json(shown(await putSet(env, path.name, body)))
}

/** As `requireOwn`, where what it asks may be gone. */
async function requireOwnCollections({ env, access, record }: Caller, asks: Asks): Promise<void> {
  requireCollections(access, record.action!, await collectionsOf(env, asks), record)
}

export async function get(serving: Serving<'getQuestionSet'>): Promise<Response> {
  const set = await getSet(serving.env, serving.path.name)
  await requireOwnCollections(serving, set.asks)
  return json(shown(set))
}

export async function remove(serving: Serving<'deleteQuestionSet'>): Promise<Response> {
  const { env, path } = serving
  await requireOwnCollections(serving, (await getSet(env, path.name)).asks)
  return json(shown(await deleteSet(env, path.name)))
}

/** Begins a run, and answers before its questions are answered. */
export async function begin(serving: Serving<'runQuestionSet'>): Promise<Response> {
  const { env, path, body } = serving
  const set = await getSet(env, path.name)
  await requireOwnCollections(serving, set.asks)
  if (body.asks) await requireOwn(serving, body.asks)
  const run = await beginRun(env, set, body.asks)
  // What is left when this ends, the cron goes on with.
  waitUntil(
    goOn(env, set.name, run.id).catch((error) => logFailure('a run is left for the next minute', error)),
  )
  return json(run)
}

export async function readRun(serving: Serving<'getQuestionRun'>): Promise<Response> {
  const { env, path } = serving
  const run = await getRun(env, path.name, path.id)
  await requireOwnCollections(serving, run.asks)
  return json(run)
}

/** Ends a run that goes on. */
export async function end(serving: Serving<'endQuestionRun'>): Promise<Response> {
  const { env, path } = serving
  const run = await getRun(env, path.name, path.id)
  await requireOwnCollections(serving, run.asks)
  return json(await endRun(env, path.name, path.id))
}

/** An import has ended: the sets that ask about its collection are due. */
export async function note(serving: Serving<'noteImport'>): Promise<Response> {
  const { env, access, record, body } = serving
  requireCollections(access, record.action!, [body.collection], record)
  return json({ sets: await imported(env, body.collection) })
}
