/** How a turn reaches the collections that it searches. */
import { attempt, type Outcome } from '../errors'
import { textOf } from '../lib/parts'
import { retrieverOf } from '../registry/engines'
import { lookUpAnew } from '../registry/names'
import type { TurnPorts } from '../turn/ports'
import type { AskRequest } from '../turn/request'
import { retrieve } from '../turn/retrieve'

export type SearchPorts = Required<Pick<TurnPorts, 'search' | 'schema' | 'placeOf'>>

export const searchPorts = (env: Cloudflare.Env, { requestId }: AskRequest): SearchPorts => ({
  search: (place, params, scope) =>
    told(() => retrieverOf(env, place).search(params, { ...scope, requestId })),
  schema: (place) => told(() => retrieverOf(env, place).schema()),
  placeOf: (collection) => lookUpAnew(env, collection).catch(() => undefined),
})

/** Returns a collection's reply. An unavailable collection fails only its own search, not the others. */
async function told<T>(ask: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
  const outcome = await attempt(ask)
  return outcome.ok ? outcome.value : outcome
}

/**
 * Begins the searches of a question in its own wording before its turn begins, or is sure to.
 * @returns ports for that turn: where it asks the same, it gets what began
 */
export function searchAhead(env: Cloudflare.Env, request: AskRequest): SearchPorts {
  const { search, schema, placeOf } = searchPorts(env, request)
  const ports = { search: keeping(search), schema: keeping(schema), placeOf }
  retrieve(request.searches, textOf(request.question), ports).catch(() => {})
  return ports
}

/** Calls once for the same arguments. */
function keeping<Given extends unknown[], T>(
  call: (...given: Given) => Promise<T>,
): (...given: Given) => Promise<T> {
  const begun = new Map<string, Promise<T>>()
  return (...given) => {
    const key = JSON.stringify(given)
    const reply = begun.get(key) ?? call(...given)
    begun.set(key, reply)
    return reply
  }
}
