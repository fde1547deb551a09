/**
 * Embedding models registered under an id of their own. Each stands for the model of the field that it is used on.
 */
import { findAll, modelIn } from '../../../registry/resources'
import { isObject, type Json } from '../route'

/** A search whose `neural` queries no longer name such ids. */
export async function withOwnModels(env: Cloudflare.Env, body: Json): Promise<Json> {
  if (!JSON.stringify(body.query ?? '').includes('"neural":')) return body
  const rows = await findAll(env, 'model')
  const own = new Set(rows.filter((row) => modelIn(row).connector === undefined).map(({ id }) => id))
  return { ...body, query: withoutIds(body.query, own) }
}

function withoutIds(query: unknown, own: ReadonlySet<string>, inNeural = false): unknown {
  if (Array.isArray(query)) return query.map((each) => withoutIds(each, own))
  if (!isObject(query)) return query
  return Object.fromEntries(
    Object.entries(query).flatMap(([key, value]) => {
      const field = inNeural && isObject(value) ? value : undefined
      if (field === undefined) return [[key, withoutIds(value, own, key === 'neural')]]
      const { model_id: id, ...rest } = field
      return [[key, typeof id === 'string' && own.has(id) ? rest : field]]
    }),
  )
}
