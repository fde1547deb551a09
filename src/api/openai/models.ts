/** Assistants as models: those that a key may ask. */
import type { Access } from '../../auth/access'
import { ApiError } from '../../errors'
import { getAssistant, listAssistants, type ShownAssistant } from '../../registry/assistants'
import { admitAsker, openTo } from '../assistants/open'
import { json } from '../edge/response'
import type { OpenCall } from '../edge/route'
import { UnknownModel } from './errors'

export async function listModels({ env, request, record }: OpenCall): Promise<Response> {
  const access = await admitAsker(env, request, record)
  const all = await listAssistants(env)
  return json({ object: 'list', data: all.filter((assistant) => isOpen(access, assistant)).map(modelOf) })
}

export async function getModel({ env, request, record, path }: OpenCall): Promise<Response> {
  const access = await admitAsker(env, request, record)
  const name = path.model ?? ''
  const assistant = await getAssistant(env, name).catch((error) => {
    if (error instanceof ApiError && error.status === 404) throw new UnknownModel(name)
    throw error
  })
  if (!isOpen(access, assistant)) throw new UnknownModel(name)
  return json(modelOf(assistant))
}

const isOpen = (access: Access, assistant: ShownAssistant): boolean => openTo(access, assistant) !== undefined

const modelOf = ({ name, created_at }: ShownAssistant) => ({
  id: name,
  object: 'model',
  created: Math.floor(created_at / 1000),
  owned_by: 'parley',
})
