/**
 * The joins of one search: asks other collections' objects which of their documents are related to those here.
 *
 * Two documents are related if a reference field of one has the value of the field that it refers to in the other.
 * Objects exchange these values as keys (documents/join-keys.ts).
 */
import { ApiError } from '../../errors'
import { mapFew } from '../../lib/few'
import { keysIn } from '../documents/join-keys'
import type { JoinedDocuments } from '../filter/context'
import { type FilterJoin, type FilterNode, joinsOf, parseFilter } from '../filter/parse'
import { joinKey } from '../filter/print'
import { jsonLists, withoutQuoted } from '../fragment'
import { MAX_JOINS } from '../limits'
import { referenceOf } from '../schema/field'
import { requireFilled } from '../schema/filling'
import { isArray, isReference, type StoredSchema } from '../schema/layout'
import type { Field, JoinAnswer, JoinPlace, JoinQuestion, SearchParameters, SearchScope } from '../types'
import type { SearchContext } from './context'
import type { JoinPort, Relation, SearchJoins } from './join-port'

/** How many questions one search sends at the same time. An object has six connections. */
const AT_ONCE = 4
/** Keys looked up between turns of others. */
const KEYS_A_TURN = 5_000

/** Whether parameters name joins at all: all other searches do nothing here. */
export const hasJoins = (params: SearchParameters): boolean =>
  [params.filter_by, params.include_fields, params.exclude_fields, params.sort_by, params.facet_by].some(
    (text) => text?.includes('$'),
  )

/** @throws ApiError 400 for more joins than one search may have */
function requireFew(params: SearchParameters): void {
  const { filter_by = '', include_fields = '', sort_by = '', facet_by = '' } = params
  const count = [
    ...withoutQuoted(`${filter_by} ${include_fields} ${sort_by} ${facet_by}`).matchAll(/\$[^\s$()]+\s*\(/g),
  ]
  if (count.length > MAX_JOINS) throw new ApiError(400, `A search takes at most ${MAX_JOINS} joins.`)
}

export class Joins implements SearchJoins {
  readonly filter: FilterNode | undefined
  readonly #context: SearchContext
  readonly #port: JoinPort | undefined
  readonly #scope: SearchScope
  readonly #until: number
  readonly #depth: number
  readonly #caller: AbortSignal | undefined
  readonly #relations = new Map<string, Promise<Relation>>()
  readonly #documents = new Map<string, ArrayLike<number>>()
  readonly #own: FilterNode | undefined
  /** the joins of a scoped key's own filter */
  readonly #trusted: Set<string>

  /**
   * @param until when the search is cut off, by performance.now()
   * @param depth levels of joins that are allowed
   * @param caller aborts when nobody waits for the search any more
   * @param trusted the part of the filter that comes from a scoped key's own joins
   */
  constructor(
    context: SearchContext,
    params: SearchParameters,
    scope: SearchScope,
    {
      until,
      depth,
      caller,
      trusted = '',
    }: { until: number; depth: number; caller?: AbortSignal | undefined; trusted?: string | undefined },
  ) {
    requireFew(params)
    this.#context = context
    this.#port = context.port
    this.#scope = scope
    this.#until = until
    this.#depth = depth
    this.#caller = caller
    this.filter = parseFilter(params.filter_by ?? '')
    this.#own = parseFilter(scope.filter ?? '')
    // In a collection other than the key's home, its joins have another meaning. Joins that look the same are then
    // the caller's.
    const own = context.port?.objectId === scope.home ? this.#own : undefined
    this.#trusted = new Set([own, parseFilter(trusted)].flatMap(joinsOf).map(joinKey))
  }

  get #reach(): JoinPort {
    if (this.#port === undefined) throw new ApiError(400, 'This collection cannot be joined.')
    return this.#port
  }

  get documents(): JoinedDocuments {
    return this.#documents
  }

  get scope(): SearchScope {
    return this.#scope
  }

  isKeys(join: FilterJoin): boolean {
    return this.#trusted.has(joinKey(join))
  }

  place(name: string, parameter: string): JoinPlace {
    const { joins = {} } = this.#scope
    if (Object.hasOwn(joins, name)) return joins[name]!
    throw new ApiError(400, `Referenced collection \`${name}\` in \`${parameter}\` not found.`)
  }

  isWith(join: FilterJoin, { objectId }: JoinPlace): boolean {
    return this.place(join.collection, 'filter_by').objectId === objectId
  }

  isCalled(name: string, { objectId }: JoinPlace): boolean {
    const { joins = {}, excluded = {} } = this.#scope
    return [
      Object.hasOwn(joins, name) && joins[name]!.objectId,
      Object.hasOwn(excluded, name) && excluded[name],
    ].includes(objectId)
  }

  /** Evaluates the joins of the filter. @throws ApiError */
  async resolve(): Promise<void> {
    const joins = new Map(joinsOf(this.filter).map((join) => [joinKey(join), join]))
    await mapFew([...joins], AT_ONCE, async ([key, { collection, filter }]) => {
      const place = this.place(collection, 'filter_by')
      const answer = await this.ask(place, { filter, trusted: this.#trusted.has(key), want: 'keys' })
      this.#documents.set(key, await this.#withKeys(answer))
    })
  }

  relation(place: JoinPlace): Promise<Relation> {
    const known = this.#relations.get(place.objectId)
    if (known !== undefined) return known
    const found = this.#forward(place).then(async (forward): Promise<Relation> => {
      if (forward !== undefined) return forward
      const { on, array } = await this.ask(place, { filter: '', want: 'relation' })
      return { on, array }
    })
    this.#relations.set(place.objectId, found)
    return found
  }

  async #forward(place: JoinPlace): Promise<Relation | undefined> {
    const field = await referring(this.#context.schema, place, this.#reach.lookUp)
    return field && { on: field.name, target: referenceOf(field).field, array: isArray(field) }
  }

  async ask(place: JoinPlace, asked: Pick<JoinQuestion, 'filter' | 'want' | 'trusted'>): Promise<JoinAnswer> {
    const forward = await this.#forward(place)
    const port = this.#reach
    const ticket = this.#caller && crypto.randomUUID()
    const leave = () => port.abandon(place, ticket!)
    this.#caller?.addEventListener('abort', leave)
    const asking = port.ask(place, {
      ticket,
      asker: { objectId: port.objectId, name: this.#context.schema.name },
      target: forward?.target,
      only: restriction(this.#own, (join) => this.isWith(join, place)) ?? '',
      scope: this.#scope,
      history: place.history,
      cutoffMs: Math.max(1, this.#until - performance.now()),
      depth: this.#depth - 1,
      ...asked,
    })
    const answer = await asking.finally(() => this.#caller?.removeEventListener('abort', leave))
    const relation = forward ?? { on: answer.on, array: answer.array }
    if (!this.#relations.has(place.objectId)) this.#relations.set(place.objectId, Promise.resolve(relation))
    if (forward === undefined) await port.ensureKeyed(answer.on)
    return { ...answer, on: relation.on, array: relation.array }
  }

  /** The documents here with one of the keys, in ascending order. */
  async #withKeys({ on, keys = [] }: JoinAnswer): Promise<Float64Array> {
    const found = new Set<number>()
    const relation = keysIn(on)
    for (const [turn, list] of jsonLists(keys, KEYS_A_TURN).entries()) {
      if (turn > 0) await scheduler.wait(0)
      const rows = this.#context.sql.exec<{ seq: number }>(
        `SELECT k.seq FROM ${relation.sql} k WHERE k.key IN (SELECT value FROM json_each(?))`,
        ...relation.bindings,
        list,
      )
      for (const { seq } of rows) found.add(seq)
    }
    return Float64Array.from(found).sort()
  }

  keysOf(seqs: readonly number[], on: string): { seq: number; key: string }[] {
    const relation = keysIn(on, 'seq')
    return jsonLists(seqs.map(String)).flatMap((list) =>
      this.#context.sql
        .exec<{ seq: number; key: string }>(
          `SELECT k.seq, json_quote(k.key) AS key FROM ${relation.sql} k WHERE k.seq IN (SELECT value FROM json_each(?))`,
          ...relation.bindings,
          list,
        )
        .toArray(),
    )
  }
}

/**
 * The reference field of a schema that refers to a collection; the first one, if several do.
 * @throws StillFilling while its keys are incomplete
 */
export async function referring(
  schema: StoredSchema,
  { objectId, name }: { objectId: string; name: string },
  lookUp: JoinPort['lookUp'],
): Promise<Field | undefined> {
  const references = schema.fields.filter(isReference)
  let found = references.find((field) => referenceOf(field).collection === name)
  // It may name the collection by an alias.
  for (const field of found ? [] : references) {
    if ((await lookUp(referenceOf(field).collection)) !== objectId) continue
    found = field
    break
  }
  if (found !== undefined) requireFilled(schema, found.name)
  return found
}

/**
 * The restriction that a filter's joins put on another collection: the condition that all its documents must meet to
 * be related to a document that passes.
 */
function restriction(
  node: FilterNode | undefined,
  isWith: (join: FilterJoin) => boolean,
): string | undefined {
  if (node === undefined || node.kind === 'clause' || node.kind === 'object') return undefined
  if (node.kind === 'join') return node.negated || !isWith(node) ? undefined : node.filter
  const each = node.children.map((child) => restriction(child, isWith))
  const some = each.filter((condition) => condition !== undefined)
  if (some.length === 0 || (node.kind === 'or' && some.length < each.length)) return undefined
  return bracketed(some, node.kind === 'and' ? ' && ' : ' || ')
}

/** Joins filters by an operator. Blank ones are left out. */
export const bracketed = (filters: readonly string[], operator: ' && ' | ' || '): string =>
  filters
    .filter((filter) => filter.trim() !== '')
    .map((filter) => `(${filter})`)
    .join(operator)
