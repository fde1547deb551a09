/** Assistants to list, make, read and delete, and what a page may know of one. */
import { requireCollections } from '../../auth/admit'
import {
  type AssistantConfig,
  deleteAssistant,
  getAssistant,
  listAssistants,
  putAssistant,
  readAssistant,
  searchesOf,
} from '../../registry/assistants'
import { openAssistant } from '../assistants/open'
import { json } from '../edge/response'
import type { operations } from './operations'
import type { Served } from './route'

type Serving<Name extends keyof typeof operations> = Served<(typeof operations)[Name]>

export const list = async ({ env }: Serving<'listAssistants'>): Promise<Response> =>
  json({ assistants: await listAssistants(env) })

/**
 * Whose key is bound to an assistant asks it without a right to its collections. So who makes one has to name them, and
 * who changes one those that it had: visitors' questions would go elsewhere else.
 */
export async function put({ env, access, record, path, body }: Serving<'putAssistant'>): Promise<Response> {
  const { name } = path
  await requireOwn({ env, access, record, path })
  requireCollections(access, record.action!, namesOf(body), record)
  return json(await putAssistant(env, name, body))
}

export const get = async ({ env, path }: Serving<'getAssistant'>): Promise<Response> =>
  json(await getAssistant(env, path.name))

export async function remove(serving: Serving<'deleteAssistant'>): Promise<Response> {
  await requireOwn(serving)
  return json(await deleteAssistant(serving.env, serving.path.name))
}

const namesOf = (assistant: AssistantConfig): string[] =>
  searchesOf(assistant).map(({ collection }) => collection)

/** @throws ApiError 401 for an assistant of a collection that the key does not name */
async function requireOwn({
  env,
  access,
  record,
  path: { name },
}: Pick<Serving<'putAssistant'>, 'env' | 'access' | 'record' | 'path'>): Promise<void> {
  const present = await readAssistant(env, name)
  if (present) requireCollections(access, record.action!, namesOf(present), record)
}

export async function front({ env, access, path, record }: Serving<'frontOfAssistant'>): Promise<Response> {
  const assistant = await openAssistant(env, access, path.assistant, record)
  const { name, questions, followups, title_field, url_field, citation_field } = assistant
  return json({ name, questions, followups, title_field, url_field, citation_field })
}
