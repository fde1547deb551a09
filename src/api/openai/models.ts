/** Lists as models the assistants that a key may ask. */
import { ApiError } from '../../errors'
import { getAssistant, listAssistants, type ShownAssistant } from '../../registry/assistants'
import { admitAsker, openHere, openTo, requireListed } from '../http/open-assistant'
import { json } from '../http/response'
import type { OpenCall } from '../http/route'
import { unknownModel } from './errors'

export async function listModels(call: OpenCall): Promise<Response> {
  const { env, record } = call
  const access = await admitAsker(call)
  const all = await listAssistants(env)
  return json({
    object: 'list',
    data: all.filter((assistant) => openHere(access, assistant, record)).map(modelOf),
  })
}

export async function getModel(call: OpenCall): Promise<Response> {
  const { env, record, path } = call
  const access = await admitAsker(call)
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
