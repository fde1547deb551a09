/** The conversation model that a request names, and its history collection. */
import type { Access } from '../../auth/access'
import { mayAsk } from '../../auth/pins'
import { ApiError } from '../../errors'
import type { ConversationModelConfig } from '../../models/language-model'
import { findModel } from '../../registry/models'
import { findForQuestion } from '../../registry/names'
import type { FindResource } from '../../registry/resources'

/** @returns undefined if the model is unknown or the key may not ask it: callers cannot tell which */
export const findOpenModel = async (
  env: Cloudflare.Env,
  accesses: readonly Access[],
  id: string,
  find?: FindResource,
): Promise<ConversationModelConfig | undefined> =>
  mayAsk(accesses, id) ? findModel(env, id, find) : undefined

export async function findHistory(env: Cloudflare.Env, model: ConversationModelConfig): Promise<string> {
  try {
    return (await findForQuestion(env, model.history_collection)).objectId
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
