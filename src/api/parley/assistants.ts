/** Assistants to list, make, read and delete, and what a page may know of one. */
import { deleteAssistant, getAssistant, listAssistants, putAssistant } from '../../conversation/assistants'
import { openAssistant } from '../assistants/open'
import { json } from '../typesense/response'
import type { operations } from './operations'
import type { Served } from './route'

type Serving<Name extends keyof typeof operations> = Served<(typeof operations)[Name]>

export const list = async ({ env }: Serving<'listAssistants'>): Promise<Response> =>
  json({ assistants: await listAssistants(env) })

export async function put({ env, path, body, record }: Serving<'putAssistant'>): Promise<Response> {
  record.target = path.name
  return json(await putAssistant(env, path.name, body))
}

export const get = async ({ env, path }: Serving<'getAssistant'>): Promise<Response> =>
  json(await getAssistant(env, path.name))

export async function remove({ env, path, record }: Serving<'deleteAssistant'>): Promise<Response> {
  record.target = path.name
  return json(await deleteAssistant(env, path.name))
}

export async function front({ env, access, path }: Serving<'frontOfAssistant'>): Promise<Response> {
  const { name, questions, followups } = await openAssistant(env, access, path.assistant)
  return json({ name, questions, followups })
}
