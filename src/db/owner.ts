/**
 * Marks which Worker a D1 database belongs to. Its rows name Durable Objects of one Worker. Another Worker that used
 * the database would expire its history, and would delete its own collections as orphans.
 *
 * The mark is one row. `npm run deploy` writes the Worker's name into it before anything else
 * (scripts/deploy/plan.mjs). The Worker adds the identity of its Durable Objects: the id of a named object depends
 * on its namespace's secret and on the jurisdiction, so it is the same in every version of one Worker, and different in
 * any other, whatever the configuration says. The first Worker to meet a database without a mark claims it: a local one, or one from a
 * version that wrote no mark.
 *
 * Its table is not in migrations/, because the mark is checked before those are applied.
 */

import { objectId } from '../durable/objects'
import { ApiError, reasonOf } from '../errors'

/** scripts/deploy/plan.mjs has the same statement. */
export const CREATE_OWNER =
  'CREATE TABLE IF NOT EXISTS owner (id INTEGER PRIMARY KEY CHECK (id = 1), worker TEXT, namespace TEXT)'

const CLAIM = `INSERT INTO owner (id, namespace) VALUES (1, ?)
  ON CONFLICT (id) DO UPDATE SET namespace = excluded.namespace WHERE owner.namespace IS NULL`

type Bound = Pick<Cloudflare.Env, 'DB' | 'CONVERSATION' | 'JURISDICTION'>

interface Owner {
  worker: string | null
  namespace: string | null
}

/** The namespace that this isolate has verified as the database's owner. */
let verified: string | undefined

/** The identity of this Worker's objects. */
const ownOf = (env: Bound): string =>
  objectId(env.CONVERSATION as DurableObjectNamespace, env, 'owner').toString()

/** Whether this isolate has verified its database. Requests then need not wait for the check. */
export const isVerified = (env: Bound): boolean => verified === ownOf(env)

/**
 * Makes sure, once an isolate, that the database belongs to this Worker.
 * @throws ApiError 503 when it is another Worker's; D1's own error when it does not answer
 */
export async function requireOwnDatabase(env: Bound): Promise<void> {
  const { DB } = env
  const own = ownOf(env)
  if (verified === own) return
  const { worker, namespace } = (await read(DB, true)) ?? (await claim(DB, own))
  if (namespace !== own) {
    console.error(`The D1 database belongs to another Worker${worker === null ? '' : `, ${worker}`}.`)
    throw new ApiError(503, FOREIGN)
  }
  verified = own
}

const FOREIGN =
  'The D1 database of this Parley belongs to another Worker, or to this one in another jurisdiction. Nothing was read or written: see docs/deploy.md, "How do I deploy a second Parley?"'

/**
 * Like `requireOwnDatabase`, for requests. It lets a request through if D1 does not answer: nothing can be written
 * then, and many routes work without D1.
 * @throws ApiError 503 when it is another Worker's
 */
export async function requireNoForeignDatabase(env: Bound): Promise<void> {
  try {
    await requireOwnDatabase(env)
  } catch (error) {
    if (error instanceof ApiError) throw error
    console.error('the owner of the database could not be read', reasonOf(error))
  }
}

/** @param claimed ignore a mark that does not name a Worker's objects yet */
async function read(db: D1Database, claimed: boolean): Promise<Owner | undefined> {
  try {
    const owner = await db.prepare('SELECT worker, namespace FROM owner').first<Owner>()
    return owner === null || (claimed && owner.namespace === null) ? undefined : owner
  } catch (error) {
    if (/no such table/.test(String(error))) return undefined
    throw error
  }
}

/** Claims the database. One of several concurrent claims succeeds. @returns the owner */
async function claim(db: D1Database, own: string): Promise<Owner> {
  await db.batch([db.prepare(CREATE_OWNER), db.prepare(CLAIM).bind(own)])
  const owner = await read(db, false)
  if (owner === undefined) throw new Error('The mark of the owner was not kept.')
  return owner
}
