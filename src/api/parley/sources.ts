/** Registers what is read again by themselves, and shows how that goes. */
import { requireCollections } from '../../auth/admit'
import { register, runNow } from '../../sources/register'
import { getSource, listSources, removeSource } from '../../sources/source'
import { json } from '../http/deliver'
import type { operations } from './operations'
import type { Served } from './route'

type Serving<Name extends keyof typeof operations> = Served<(typeof operations)[Name]>

export const list = async ({ env }: Serving<'listSources'>): Promise<Response> =>
  json({ sources: await listSources(env) })

export async function put({ env, access, record, path, body }: Serving<'putSource'>): Promise<Response> {
  const { name } = path
  const before = (await listSources(env)).find((each) => each.name === name)
  const collections = [...(before ? [before.collection] : []), body.collection]
  requireCollections(access, record.action!, collections, record)
  return json(await register(env, name, body))
}

/** @throws ApiError 401 for a source of a collection that the key does not name, 404 */
async function requireOwn({
  env,
  access,
  record,
  path: { name },
}: Pick<Serving<'deleteSource'>, 'env' | 'access' | 'record' | 'path'>): Promise<void> {
  const { collection } = await getSource(env, name)
  requireCollections(access, record.action!, [collection], record)
}

export async function remove(serving: Serving<'deleteSource'>): Promise<Response> {
  await requireOwn(serving)
  return json(await removeSource(serving.env, serving.path.name))
}

export async function run(serving: Serving<'runSource'>): Promise<Response> {
  await requireOwn(serving)
  return json(await runNow(serving.env, serving.path.name))
}
