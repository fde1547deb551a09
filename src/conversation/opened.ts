/** Conversations that exist before anything is said in them. */
import { unwrap } from '../errors'
import type { Asker } from '../turn/request'
import { conversationObject } from './conversation-object'
import { sealedId } from './sealed-id'

export interface NewConversation {
  protocol: string
  /** id of the Collection object of its history collection, and the model id that its messages carry */
  historyId: string
  modelId: string
  /** seconds */
  ttl: number
  /** '': it is named after its first question */
  title: string
  /** kept with its row in D1, as JSON */
  details: object
}

/** @returns its id @throws ApiError 503 while D1 is unavailable */
export async function openConversation(
  env: Cloudflare.Env,
  asker: Asker,
  { details, ...given }: NewConversation,
): Promise<string> {
  const id = await sealedId(env)
  unwrap(
    await conversationObject(env, id).tell({
      what: 'open',
      conversationId: id,
      asker,
      ...given,
      details: JSON.stringify(details),
    }),
  )
  return id
}
