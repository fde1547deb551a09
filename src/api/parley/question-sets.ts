/**
 * Stores question sets, has them asked, and shows what was answered. A set is asked with the server's own rights, and its searches may
 * join any collection: a key needs the right to all of them.
 */
import { waitUntil } from 'cloudflare:workers'
import { requireAllCollections, requireCollections } from '../../auth/authenticate'
import { badRequest, logFailure } from '../../errors'
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
import { guarded, type Handlers } from './route'

/** What a page of sets need not know. */
function shown({ busy_until: _, ...set }: QuestionSet) {
  return set
}

/** @throws ApiError 400 for an assistant or a model that is not there */
async function requirePresent(env: Cloudflare.Env, { assistant, model }: Asks): Promise<void> {
  if (assistant === undefined) await requireModel(env, '`asks.model`', model)
  else if (!(await findAssistant(env, assistant)))
    throw badRequest(`\`asks.assistant\`: There is no assistant \`${assistant}\`.`)
}

async function requireModel(env: Cloudflare.Env, place: string, id = ''): Promise<void> {
  if (!(await findModel(env, id))) throw badRequest(`${place}: There is no conversation model \`${id}\`.`)
}

/** What is left when this ends, others go on with: readers of the run, and the cron. */
const askOn = (env: Cloudflare.Env, name: string): void =>
  waitUntil(goOn(env, name).catch((error) => logFailure('a run is left for the next minute', error)))

const ofSets = guarded(requireAllCollections, {
  listQuestionSets: async ({ env }) => ({ sets: (await listSets(env)).map(shown) }),

  async putQuestionSet({ env, path, body }) {
    await requirePresent(env, body.asks)
    if (body.judge !== undefined) await requireModel(env, '`judge`', body.judge)
    return shown(await putSet(env, path.name, body))
  },

  getQuestionSet: async ({ env, path }) => shown(await getSet(env, path.name)),
  deleteQuestionSet: async ({ env, path }) => shown(await deleteSet(env, path.name)),

  /** Begins a run, and answers before its questions are answered. */
  async runQuestionSet({ env, path, body }) {
    const set = await getSet(env, path.name)
    if (body.asks) await requirePresent(env, body.asks)
    const run = await beginRun(env, set, body.asks)
    askOn(env, set.name)
    return run
  },

  /** Goes on with a run, unless somebody does. */
  async stepQuestionRun({ env, path }) {
    const run = await getRun(env, path.name, path.id)
    if (run.ended_at === undefined) askOn(env, path.name)
    return run
  },

  getQuestionRun: ({ env, path }) => getRun(env, path.name, path.id),

  /** Ends a run that goes on. */
  endQuestionRun: ({ env, path }) => endRun(env, path.name, path.id),
})

export const questionSets = {
  ...ofSets,

  /** An import has ended: the sets that ask about its collection are due. */
  async noteImport({ env, access, record, body }) {
    requireCollections(access, record.action!, [body.collection], record)
    return { sets: await imported(env, body.collection) }
  },
} satisfies Partial<Handlers>
