/** The conversation model that a request names, and where its history lies. */
import type { Access } from '../../auth/access'
import { mayAsk } from '../../auth/pins'
import { ApiError } from '../../errors'
import type { ConversationModelConfig } from '../../models/language-model'
import { findModel } from '../../registry/models'
import { findCollection } from '../../registry/names'

/** The model, unless it is unknown or a key is for another one: who may not ask it is not told that it exists. */
export const findOpenModel = async (
  env: Cloudflare.Env,
  accesses: readonly Access[],
  id: string,
): Promise<ConversationModelConfig | undefined> => (mayAsk(accesses, id) ? findModel(env, id) : undefined)

export async function findHistory(env: Cloudflare.Env, model: ConversationModelConfig): Promise<string> {
  try {
    return (await findCollection(env, model.history_collection)).objectId
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    throw new ApiError(
      400,
      `The history collection \`${model.history_collection}\` of the conversation model does not exist any more.`,
      undefined,
      true,
    )
  }
}
