/** How a turn reaches the collections that it searches. */
import { attempt, type Outcome } from '../errors'
import { textOf } from '../lib/parts'
import { retrieverOf } from '../registry/engines'
import { lookUpAnew } from '../registry/names'
import type { RecentMessages } from '../search/types'
import type { TurnPorts } from '../turn/ports'
import type { AskRequest } from '../turn/request'
import { retrieve } from '../turn/retrieve'
import { searchAtOnce } from '../turn/run'

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
 * @param known what was said before, if it was read
 * @returns ports for that turn: where it asks the same, it gets what began
 */
export function searchAhead(
  env: Cloudflare.Env,
  request: AskRequest,
  known: RecentMessages | undefined,
): SearchPorts {
  const { search, schema, placeOf } = searchPorts(env, request)
  const [searches, schemas] = [keeping(search), keeping(schema)]
  const begin = { search: searches.begin, schema: schemas.begin, placeOf }
  const { transcript = [], continues } = request
  const isFirst = transcript.length === 0 && (known ? known.messages.length === 0 : !continues)
  const searching = isFirst
    ? retrieve(request.searches, textOf(request.question), begin)
    : searchAtOnce(request, { ...begin, known }, Date.now())
  searching?.catch(() => {})
  return { search: searches.take, schema: schemas.take, placeOf }
}

/** Keeps the replies of calls that begin, and gives each out once, for the same arguments. */
function keeping<Given extends unknown[], T>(call: (...given: Given) => Promise<T>) {
  const begun = new Map<string, Promise<T>[]>()
  return {
    begin: (...given: Given): Promise<T> => {
      const key = JSON.stringify(given)
      const reply = call(...given)
      begun.set(key, [...(begun.get(key) ?? []), reply])
      return reply
    },
    take: (...given: Given): Promise<T> => begun.get(JSON.stringify(given))?.shift() ?? call(...given),
  }
}
