/** Assistants as models: those that a key may ask. */
import type { Access } from '../../auth/access'
import { getAssistant, listAssistants, type ShownAssistant } from '../../conversation/assistants'
import { ApiError } from '../../errors'
import { admitAsker, openAssistant } from '../assistants/open'
import { json } from '../typesense/response'
import type { OpenCall } from '../typesense/route'
import { UnknownModel } from './errors'

export async function listModels({ env, request, record }: OpenCall): Promise<Response> {
  const access = await admitAsker(env, request, record)
  const all = await listAssistants(env)
  const open = await Promise.all(all.map(async (assistant) => isOpen(env, access, assistant.name)))
  return json({ object: 'list', data: all.filter((_, index) => open[index]).map(modelOf) })
}

export async function getModel({ env, request, record, path }: OpenCall): Promise<Response> {
  const access = await admitAsker(env, request, record)
  const name = path.model ?? ''
  if (!(await isOpen(env, access, name))) throw new UnknownModel(name)
  return json(modelOf(await getAssistant(env, name)))
}

const isOpen = (env: Cloudflare.Env, access: Access, name: string): Promise<boolean> =>
  openAssistant(env, access, name).then(
    () => true,
    (error) => {
      if (error instanceof ApiError && error.status === 404) return false
      throw error
    },
  )

const modelOf = ({ name, created_at }: ShownAssistant) => ({
  id: name,
  object: 'model',
  created: Math.floor(created_at / 1000),
  owned_by: 'parley',
})
