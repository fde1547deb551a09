/**
 * The joins of one search: asks other collections' objects which of their documents are related to those here.
 *
 * Two documents are related if a reference field of one has the value of the field that it refers to in the other.
 * Objects exchange these values as keys (documents/join-keys.ts).
 */
import { ApiError } from '../../errors'
import { mapFew } from '../../lib/few'
import { keysIn } from '../documents/join-keys'
import { type FilterJoin, type FilterNode, joinKey, joinsOf, parseFilter, readJoin } from '../filter/parse'
import { jsonLists, splitOutside, withoutQuoted } from '../fragment'
import { MAX_JOINS } from '../limits'
import { referenceOf } from '../schema/field'
import { isArray, isReference, type StoredSchema } from '../schema/layout'
import { requireFilled } from '../schema/tables'
import type { Field, JoinAnswer, JoinPlace, JoinQuestion, SearchParameters, SearchScope } from '../types'

/** How a collection reaches others. The Collection object provides it. */
export interface JoinPort {
  objectId: string
  /** @throws ApiError what the other collection answers */
  ask(place: JoinPlace, question: JoinQuestion): Promise<JoinAnswer>
  /** Ends the answer to the question with this ticket: nobody waits for it any more. */
  abandon(place: JoinPlace, ticket: string): void
  /** The object of a collection or alias. */
  lookUp(name: string): Promise<string | undefined>
  /** Makes the keys of a field here. @throws ApiError 400 */
  ensureKeyed(field: string): Promise<void>
}

/** How documents of two collections are related. */
export interface Relation {
  /** the field here, and the field there if this collection is the one that refers */
  on: string
  target?: string
  /** the reference field holds a list */
  array: boolean
}

/** The collection that is searched. */
interface Searched {
  readonly sql: SqlStorage
  readonly schema: StoredSchema
  /** absent in an object without a name */
  readonly port?: JoinPort
}

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

/** The joins of one search. */
export class Joins {
  readonly filter: FilterNode | undefined
  readonly scope: SearchScope
  /** for `Filter`: the filter's joins, evaluated */
  readonly documents = new Map<string, ArrayLike<number>>()
  readonly #until: number
  readonly #depth: number
  readonly #caller: AbortSignal | undefined
  readonly #relations = new Map<string, Promise<Relation>>()
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
    private readonly context: Searched,
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
    this.scope = scope
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

  get #port(): JoinPort {
    const { port } = this.context
    if (port === undefined) throw new ApiError(400, 'This collection cannot be joined.')
    return port
  }

  /** Whether a join is only in the key's own filter. Its documents are shown only if the request asks for them. */
  isKeys(join: FilterJoin): boolean {
    return this.#trusted.has(joinKey(join))
  }

  /**
   * @param parameter where the join is, for the error
   * @throws ApiError 400, the same for a name that the key may not read
   */
  place(name: string, parameter: string): JoinPlace {
    const { joins = {} } = this.scope
    if (Object.hasOwn(joins, name)) return joins[name]!
    throw new ApiError(400, `Referenced collection \`${name}\` in \`${parameter}\` not found.`)
  }

  /** Whether a join is with this collection, whatever name it uses. */
  isWith(join: FilterJoin, { objectId }: JoinPlace): boolean {
    return this.place(join.collection, 'filter_by').objectId === objectId
  }

  /** Whether a name in exclude_fields is this collection's. */
  isCalled(name: string, { objectId }: JoinPlace): boolean {
    const { joins = {}, excluded = {} } = this.scope
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
      this.documents.set(key, await this.#withKeys(answer))
    })
  }

  /** The relation with another collection. @throws ApiError 400 when neither refers to the other */
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
    const field = await referring(this.context.schema, place, this.#port.lookUp)
    return field && { on: field.name, target: referenceOf(field).field, array: isArray(field) }
  }

  /** @throws ApiError what the other collection answers */
  async ask(place: JoinPlace, asked: Pick<JoinQuestion, 'filter' | 'want' | 'trusted'>): Promise<JoinAnswer> {
    const forward = await this.#forward(place)
    const port = this.#port
    const ticket = this.#caller && crypto.randomUUID()
    const leave = () => port.abandon(place, ticket!)
    this.#caller?.addEventListener('abort', leave)
    const asking = port.ask(place, {
      ticket,
      asker: { objectId: port.objectId, name: this.context.schema.name },
      target: forward?.target,
      only: restriction(this.#own, (join) => this.isWith(join, place)) ?? '',
      scope: this.scope,
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
      const rows = this.context.sql.exec<{ seq: number }>(
        `SELECT k.seq FROM ${relation.sql} k WHERE k.key IN (SELECT value FROM json_each(?))`,
        ...relation.bindings,
        list,
      )
      for (const { seq } of rows) found.add(seq)
    }
    return Float64Array.from(found).sort()
  }

  /** The keys of documents here, as JSON texts. */
  keysOf(seqs: readonly number[], on: string): { seq: number; key: string }[] {
    const relation = keysIn(on, 'seq')
    return jsonLists(seqs.map(String)).flatMap((list) =>
      this.context.sql
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

// =============================================================================
// Joins in include_fields and exclude_fields: `$collection(fields, strategy: nest, limit: 5) as name`.

interface Named {
  collection: string
  inside: string
  alias: string
}

/** @throws ApiError 400 */
function joinsIn(list: string): Named[] {
  if (!list.includes('$')) return []
  return splitOutside(list)
    .filter((part) => part.startsWith('$'))
    .map((part) => {
      const join = readJoin(part)
      const alias = join && /^(?:\s+as\s+(\S+))?$/.exec(part.slice(join.end))
      if (join === undefined || !alias) {
        throw new ApiError(
          400,
          `Invalid reference \`${part}\` in include_fields/exclude_fields, expected \`$CollectionName(fieldA, ...)\`.`,
        )
      }
      return { collection: join.collection, inside: join.inside, alias: alias[1] ?? '' }
    })
}

/** @throws ApiError 400 with Typesense's messages */
export const includesIn = (list: string): JoinInclude[] => joinsIn(list).map(readInclude)

/**
 * The fields of a joined collection that exclude_fields leaves out, in the same list syntax. Several parts add up.
 * @param isCalled whether a name is the collection's: it may have aliases @throws ApiError 400
 */
export const excludesIn = (list: string, isCalled: (name: string) => boolean): string =>
  joinsIn(list)
    .filter(({ collection }) => isCalled(collection))
    .map(({ inside }) => inside)
    .join(',')

export type JoinInclude = ReturnType<typeof readInclude>

function readInclude({ collection, inside, alias }: Named) {
  const include = {
    collection,
    /** fields of the other collection, with joins of its own; '' for all */
    fields: '',
    strategy: 'nest' as 'nest' | 'nest_array' | 'merge',
    /** the name in the document; '' for the name of the collection */
    alias,
    /** the name of the field with the number of related documents; '' for none */
    count: '',
    sortBy: '',
    /** 0: no limit */
    limit: 0,
  }
  const fields: string[] = []
  for (const part of splitOutside(inside)) {
    const option = part.startsWith('$') ? null : /^([^:]+):(.*)$/s.exec(part)
    if (option) readOption(include, option[1]!.trim(), option[2]!.trim(), inside)
    else if (part !== '') fields.push(part)
  }
  // A list that names only joins shows all fields, as in the outer list.
  include.fields = fields.join(', ')
  return include
}

function readOption(include: JoinInclude, name: string, value: string, inside: string): void {
  switch (name) {
    case 'strategy':
      if (value !== 'nest' && value !== 'nest_array' && value !== 'merge') {
        const { collection, alias } = include
        throw new ApiError(
          400,
          `Error parsing \`$${collection}(${inside})${alias && ` as ${alias}`}\`: Unknown include strategy \`${value}\`. Valid options are \`merge\`, \`nest\`, \`nest_array\`.`,
        )
      }
      include.strategy = value
      return
    case 'related_docs_count':
      include.count = value
      return
    case 'limit':
      if (!/^\d{1,9}$/.test(value))
        throw new ApiError(400, 'The `limit` of a join must be an unsigned integer.')
      include.limit = Number(value)
      return
    case 'sort_by':
      include.sortBy = value
      return
  }
  // Further keys of the order follow behind commas.
  if (include.sortBy === '' || !/(^|:)\s*(asc|desc)$/i.test(value)) {
    throw new ApiError(400, `Unknown reference \`include_fields\` parameter: \`${name}\`.`)
  }
  include.sortBy += `, ${name}:${value}`
}
