/**
 * Whose the D1 database is. Rows name Durable Objects of one Worker: another Worker that shares the database would
 * expire its history, and would take its own collections for ones that nobody registered.
 *
 * The mark is one row. `npm run deploy` writes the Worker's name into it before anything else
 * (scripts/deploy/owner.mjs); the Worker adds which Durable Objects are its own. An id of a named object is made from
 * its namespace's secret, so that it is the same in every version of a Worker and in no other Worker, whatever its
 * configuration says. A database without a mark is taken by the first that meets it: a local one, and one of a
 * version that left none.
 *
 * It is no table of migrations/: those are applied when the mark was checked.
 */
import { ApiError, reasonOf } from '../errors'

/** scripts/deploy/owner.mjs has the same. */
export const CREATE_OWNER =
  'CREATE TABLE IF NOT EXISTS owner (id INTEGER PRIMARY KEY CHECK (id = 1), worker TEXT, namespace TEXT)'

const CLAIM = `INSERT INTO owner (id, namespace) VALUES (1, ?)
  ON CONFLICT (id) DO UPDATE SET namespace = excluded.namespace WHERE owner.namespace IS NULL`

type Bound = Pick<Cloudflare.Env, 'DB' | 'CONVERSATION'>

interface Owner {
  worker: string | null
  namespace: string | null
}

/** The namespace whose database this isolate has seen to be its own. */
let verified: string | undefined

/**
 * Makes sure that the database is this Worker's, once an isolate.
 * @throws ApiError 503 when it is another Worker's; what D1 throws when it does not answer
 */
export async function requireOwnDatabase({ DB, CONVERSATION }: Bound): Promise<void> {
  const own = CONVERSATION.idFromName('owner').toString()
  if (verified === own) return
  const { worker, namespace } = (await read(DB, true)) ?? (await claim(DB, own))
  if (namespace !== own) {
    console.error(`The D1 database belongs to another Worker${worker === null ? '' : `, ${worker}`}.`)
    throw new ApiError(503, FOREIGN)
  }
  verified = own
}

const FOREIGN =
  'The D1 database of this Parley belongs to another Worker. Nothing was read or written: see docs/deploy.md, "How do I deploy a second Parley?"'

/**
 * As `requireOwnDatabase`, for requests: a D1 that does not answer writes nothing, and much works without it.
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

/** @param claimed whether only a mark counts that names a Worker's objects */
async function read(db: D1Database, claimed: boolean): Promise<Owner | undefined> {
  try {
    const owner = await db.prepare('SELECT worker, namespace FROM owner').first<Owner>()
    return owner === null || (claimed && owner.namespace === null) ? undefined : owner
  } catch (error) {
    if (/no such table/.test(String(error))) return undefined
    throw error
  }
}

/** Of several at once one takes it. @returns whose it is then */
async function claim(db: D1Database, own: string): Promise<Owner> {
  await db.batch([db.prepare(CREATE_OWNER), db.prepare(CLAIM).bind(own)])
  const owner = await read(db, false)
  if (owner === undefined) throw new Error('The mark of the owner was not kept.')
  return owner
}
