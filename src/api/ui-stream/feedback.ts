/** Feedback on a message, in the form that Algolia's chat widgets send. */
import * as v from 'valibot'
import { giveFeedback } from '../../conversation/conversations'
import { once } from '../../lib/once'
import { unknownTurn } from '../../turn/errors'
import { askerOf, namedUser } from '../http/admit-turn'
import { parseJson, readText, shaped } from '../http/body'
import { admitAsker, openAssistant } from '../http/open-assistant'
import { json } from '../http/response'
import type { OpenCall } from '../http/route'
import { placeOfMessage } from './message-id'

/** `agentId` is the assistant's name in Algolia's world. Here the path has it. */
const Body = once(() =>
  v.strictObject({
    messageId: v.string(),
    agentId: v.optional(v.string()),
    vote: v.picklist([0, 1], 'Expected 0 (down) or 1 (up).'),
    notes: v.nullish(v.pipe(v.string(), v.maxLength(2_000))),
    tags: v.nullish(v.pipe(v.array(v.pipe(v.string(), v.minLength(1), v.maxLength(100))), v.maxLength(10))),
  }),
)

/** @throws ApiError 400, 404 */
export async function rate(call: OpenCall): Promise<Response> {
  const { env, request, path, query } = call
  const access = await admitAsker(call)
  await openAssistant(call, access, path.assistant ?? '')
  const { messageId, vote, notes, tags } = shaped(Body(), parseJson(await readText(request)))
  const place = placeOfMessage(messageId)
  if (!place) throw unknownTurn()
  const asker = await askerOf({ request, accesses: [access], userId: namedUser(request, query) })
  const feedback = await giveFeedback(env, asker, place, {
    rating: vote === 1 ? 'up' : 'down',
    ...(notes != null && { comment: notes }),
    ...(tags != null && { reasons: tags }),
  })
  return json(feedback)
}
