/** Stores and deletes feedback on answers. */
import { FEEDBACK_ACTION } from '../../auth/access'
import { deleteFeedback, giveFeedback } from '../../conversation/conversations'
import type { Asker } from '../../turn/request'
import { askerOf } from '../http/admit-turn'
import { json } from '../http/deliver'
import type { operations } from './operations'
import type { Served } from './route'

type Given = Served<typeof operations.giveFeedback>

/** Whoever may read a conversation may rate its answers, and so may a key that may do nothing but that. */
function raterOf({ request, access, user }: Omit<Given, 'body'>): Promise<Asker> {
  const action = access.reach(FEEDBACK_ACTION) === 'own' ? 'conversations:get' : FEEDBACK_ACTION
  return askerOf({ request, accesses: [access], userId: user }, action)
}

const placeOf = ({ path: { id, turn } }: Pick<Given, 'path'>) => ({ conversationId: id, turn })

export async function rate(served: Given): Promise<Response> {
  return json(await giveFeedback(served.env, await raterOf(served), placeOf(served), served.body))
}

export async function withdraw(served: Served<typeof operations.deleteFeedback>): Promise<Response> {
  const deleted = await deleteFeedback(served.env, await raterOf(served), placeOf(served))
  return json({ deleted })
}
