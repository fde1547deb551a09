/** Which other collections a request may join. */
import { type Access, SEARCH_ACTION } from '../../auth/access'
import { lookUp } from '../../registry/names'
import { MAX_JOINS } from '../../search/limits'
import { hasJoins } from '../../search/run/joins'
import type { JoinPlace, SearchParameters, SearchScope } from '../../search/types'

const NAME = /\$([^\s$(){}[\]:,`&|]+)\s*\(/g

const namesOf = (text = ''): string[] => [...text.matchAll(NAME)].map((match) => match[1]!)

const namesIn = ({
  filter_by = '',
  include_fields = '',
  sort_by = '',
  facet_by = '',
}: Readonly<SearchParameters>): Set<string> =>
  new Set(namesOf(`${filter_by}\n${include_fields}\n${sort_by}\n${facet_by}`))

/**
 * The collections that parameters join and that the key may read. All others look as if they did not exist.
 *
 * A scoped key that names its collection joins only what its own parameters name.
 * @param action the right that it takes, or the right to search
 */
export async function joinScope(
  env: Cloudflare.Env,
  access: Access,
  params: Readonly<SearchParameters>,
  action: string = SEARCH_ACTION,
): Promise<Pick<SearchScope, 'joins' | 'excludes' | 'excluded' | 'includes'>> {
  if (!hasJoins(params)) return {}
  const { embedded } = access
  const own = embedded.collection === undefined ? undefined : namesIn(embedded)
  const named = new Set([...namesIn(params), ...namesOf(params.exclude_fields)])
  const allowed = [...named].filter(
    (name) =>
      (own === undefined || own.has(name)) &&
      (access.allows(action, name) || access.allows(SEARCH_ACTION, name)),
  )
  const places = await Promise.all(
    allowed.slice(0, 2 * MAX_JOINS).map(async (name): Promise<[string, JoinPlace][]> => {
      const found = await lookUp(env, name)
      if (found?.engine !== 'object') return []
      return [[name, { objectId: found.objectId, name: found.name, history: access.readsHistory(name) }]]
    }),
  )
  return {
    joins: Object.fromEntries(places.flat()),
    ...(embedded.exclude_fields && {
      excludes: embedded.exclude_fields,
      excluded: await objectsOf(env, namesOf(embedded.exclude_fields)),
    }),
    ...(embedded.include_fields && { includes: true }),
  }
}

/** The objects of collections whose fields a key hides. They are hidden under every name, so its rights do not matter. */
async function objectsOf(env: Cloudflare.Env, names: readonly string[]): Promise<Record<string, string>> {
  const found = await Promise.all(
    [...new Set(names)].map(async (name) => [name, (await lookUp(env, name))?.objectId] as const),
  )
  return Object.fromEntries(found.flatMap(([name, objectId]) => (objectId ? [[name, objectId]] : [])))
}
