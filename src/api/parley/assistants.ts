/** Assistants to list, make, read and delete, and what a page may know of one. */
import { deleteAssistant, getAssistant, listAssistants, putAssistant } from '../../conversation/assistants'
import { openAssistant } from '../assistants/open'
import { json } from '../edge/response'
import type { operations } from './operations'
import type { Served } from './route'

type Serving<Name extends keyof typeof operations> = Served<(typeof operations)[Name]>

export const list = async ({ env }: Serving<'listAssistants'>): Promise<Response> =>
  json({ assistants: await listAssistants(env) })

export const put = async ({ env, path, body }: Serving<'putAssistant'>): Promise<Response> =>
  json(await putAssistant(env, path.name, body))

export const get = async ({ env, path }: Serving<'getAssistant'>): Promise<Response> =>
  json(await getAssistant(env, path.name))

export const remove = async ({ env, path }: Serving<'deleteAssistant'>): Promise<Response> =>
  json(await deleteAssistant(env, path.name))

export async function front({ env, access, path, record }: Serving<'frontOfAssistant'>): Promise<Response> {
  const assistant = await openAssistant(env, access, path.assistant, record)
  const { name, questions, followups, title_field, url_field, citation_field } = assistant
  return json({ name, questions, followups, title_field, url_field, citation_field })
}
