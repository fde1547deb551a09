/** Lists as models the assistants that a key may ask. */
import { ApiError } from '../../errors'
import { getAssistant, listAssistants, type ShownAssistant } from '../../registry/assistants'
import { admitAsker, openHere, openTo, requireListed } from '../http/open-assistant'
import { json } from '../http/response'
import type { OpenCall } from '../http/route'
import { unknownModel } from './errors'

export async function listModels({ env, request, record }: OpenCall): Promise<Response> {
  const access = await admitAsker(env, request, record)
  const all = await listAssistants(env)
  return json({
    object: 'list',
    data: all.filter((assistant) => openHere(access, assistant, record)).map(modelOf),
  })
}

export async function getModel({ env, request, record, path }: OpenCall): Promise<Response> {
  const access = await admitAsker(env, request, record)
  const name = path.model ?? ''
  const assistant = await getAssistant(env, name).catch((error) => {
    if (error instanceof ApiError && error.code === 'unknown_assistant') throw unknownModel(name)
    throw error
  })
  if (openTo(access, assistant) === undefined) throw unknownModel(name)
  requireListed(assistant, record)
  return json(modelOf(assistant))
}

const modelOf = ({ name, created_at }: ShownAssistant) => ({
  id: name,
  object: 'model',
  created: Math.floor(created_at / 1000),
  owned_by: 'parley',
})
