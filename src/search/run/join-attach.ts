/** Adds related documents of other collections to the documents of a page. */
import { ApiError } from '../../errors'
import { mapFew } from '../../lib/few'
import { project } from '../documents/store'
import { Filter } from '../filter/filter'
import { type FilterNode, joinsOf } from '../filter/parse'
import { jsonLists, readAll, splitOutside } from '../fragment'
import { BLOCK } from '../schema/column'
import { findField } from '../schema/schema'
import { leaves } from '../schema/values'
import { atOnce } from '../steps'
import type { Document, DocumentQuestion, JoinPlace } from '../types'
import type { Running, SearchContext } from './context'
import { bracketed, excludesIn, includesIn, type JoinInclude, type Joins, type Relation } from './joins'
import { setOf } from './match-set'

type Json = Record<string, unknown>

/** Joins of a page that are requested at the same time. */
const AT_ONCE = 4

/** What one join adds to a document. */
interface Related {
  documents: Document[]
  /** number of related documents, without the limit */
  count: number
}

interface Joined {
  include: JoinInclude
  array: boolean
  /** the path of the objects that hold the reference, and so also get its documents */
  within: string | undefined
  related: Map<number, Related>
  /** with `within`: by key */
  byKey: Map<string, Related>
}

/**
 * @param shown the documents as the page shows them, by sequence number; they get the related ones
 * @throws ApiError 400 for a malformed or impossible join
 */
export async function attachJoins(
  context: Running,
  shown: ReadonlyMap<number, Document>,
  fields: { include: string; exclude: string },
): Promise<void> {
  const { joins } = context
  if (joins === undefined || shown.size === 0) return
  const excluded = ({ collection }: JoinInclude): string => {
    const place = joins.place(collection, 'include_fields')
    return excludesIn(fields.exclude, (name) => joins.isCalled(name, place))
  }
  const includes = [...includesIn(fields.include)]
  for (const include of defaults(joins, includes)) includes.push(include)
  const wanted = includes
    .map((include) => ({ include, exclude: excluded(include) }))
    .filter(({ exclude }) => !splitOutside(exclude).includes('*'))
  const all = await context.pace.away(
    mapFew(wanted, AT_ONCE, ({ include, exclude }) =>
      relatedDocuments(context, joins, include, exclude, [...shown.keys()]),
    ),
  )
  const whole = all.some(({ within }) => within !== undefined) ? context.read([...shown.keys()], true) : shown
  for (const joined of all) {
    for (const [seq, document] of shown) add(context, document, whole.get(seq) ?? document, seq, joined)
  }
}

/** As in Typesense, collections in the filter's joins are shown, unless only a scoped key names them. */
function defaults(joins: Joins, named: readonly JoinInclude[]): JoinInclude[] {
  if (joins.scope.includes) return []
  const known = new Set(named.map(({ collection }) => collection))
  return joinsOf(joins.filter).flatMap((join) => {
    if (known.has(join.collection) || joins.isKeys(join)) return []
    known.add(join.collection)
    return includesIn(`$${join.collection}(*)`)
  })
}

async function relatedDocuments(
  context: SearchContext,
  joins: Joins,
  include: JoinInclude,
  exclude: string,
  seqs: readonly number[],
): Promise<Joined> {
  const place = joins.place(include.collection, 'include_fields')
  const question: DocumentQuestion = {
    include: include.fields,
    exclude: [exclude, joins.scope.excludes ?? ''].filter(Boolean).join(','),
    sortBy: include.sortBy,
    limit: include.limit,
    keys: [],
  }
  const relation = await relationOrLink(joins, place)
  if (relation === undefined) return throughLink(context, joins, include, question, seqs)
  const joined: Joined = {
    include,
    array: relation.array,
    within: withinObject(context, joins, place, relation),
    related: new Map(),
    byKey: new Map(),
  }
  for (const [filter, group] of shownOf(context, joins, place, seqs)) {
    const keys = joins.keysOf(group, relation.on)
    if (keys.length === 0) continue
    const lists = jsonLists(new Set(keys.map(({ key }) => key)))
    const answer = await joins.ask(place, { filter, want: { ...question, keys: lists } })
    const { documents = [], related = [] } = answer
    for (const [key, places, count] of related) {
      joined.byKey.set(key, { documents: places.map((at) => documents[at]!), count })
    }
    for (const { seq, key } of keys) {
      const some = joined.byKey.get(key)
      if (some !== undefined) joined.related.set(seq, both(joined.related.get(seq), some, include.limit))
    }
  }
  return joined
}

const both = (before: Related | undefined, more: Related, limit: number): Related => {
  if (before === undefined) return more
  const documents = [...before.documents, ...more.documents]
  return {
    documents: limit > 0 ? documents.slice(0, limit) : documents,
    count: before.count + more.count,
  }
}

/** @returns undefined when another join of the filter may lead there */
async function relationOrLink(joins: Joins, place: JoinPlace): Promise<Relation | undefined> {
  try {
    return await joins.relation(place)
  } catch (error) {
    const links = joinsOf(joins.filter).some((join) => !joins.isWith(join, place))
    if (error instanceof ApiError && error.status === 400 && links) return undefined
    throw error
  }
}

/** Documents that a joined collection refers to: the other side of a link collection. */
async function throughLink(
  context: SearchContext,
  joins: Joins,
  include: JoinInclude,
  { exclude, sortBy, limit }: DocumentQuestion,
  seqs: readonly number[],
): Promise<Joined> {
  const name = include.collection
  const related = new Map<number, Related>()
  const array = false
  for (const link of new Set(joinsOf(joins.filter).map(({ collection }) => collection))) {
    if (link === name) continue
    // Request the id as well, to distinguish documents whichever fields are shown.
    const fields = include.fields === '' ? '' : `${include.fields}, id`
    const order = sortBy === '' ? '' : `, sort_by: ${sortBy}`
    const inner = `$${name}(${fields || '*'}, strategy: nest_array${order}) as joined`
    const asked = includesIn(`$${link}(id, ${inner})`)[0]!
    const found = await relatedDocuments(context, joins, asked, exclude && `$${name}(${exclude})`, seqs)
    for (const [seq, { documents }] of found.related) {
      const unique = new Map<string, Document>()
      for (const { joined = [] } of documents as (Document & { joined?: Document[] })[]) {
        for (const document of joined) unique.set(document.id, document)
      }
      const list = [...unique.values()].map((document) => project(document, include.fields, exclude))
      related.set(seq, { documents: limit > 0 ? list.slice(0, limit) : list, count: list.length })
    }
  }
  return { include, array, within: undefined, related, byKey: new Map() }
}

/**
 * The objects that hold a reference, if the related documents are shown inside them because the filter does not join
 * them.
 */
function withinObject(
  { schema }: SearchContext,
  joins: Joins,
  place: JoinPlace,
  { on, target }: Relation,
): string | undefined {
  const field = target === undefined ? undefined : findField(schema, on)
  const filtered = joinsOf(joins.filter).some((join) => joins.isWith(join, place))
  return field?.nested && !filtered ? on : undefined
}

function add(
  { schema }: SearchContext,
  document: Document,
  whole: Document,
  seq: number,
  { include, array, within, related, byKey }: Joined,
): void {
  if (include.count !== '') (document as Json)[include.count] = related.get(seq)?.count ?? 0
  if (within === undefined) {
    const some = related.get(seq)
    if (some !== undefined) merge(document, include, array, some)
    return
  }
  const path = schema.enable_nested_fields ? within.split('.') : undefined
  const parents = leaves(document, within, path)
  // An object that the page does not show cannot hold its documents.
  for (const { parent, value, inArray } of parents.length > 0 ? parents : leaves(whole, within, path)) {
    const target = parents.length > 0 ? (parent as Json) : document
    const keys = [value].flat().map((key) => JSON.stringify(key))
    for (const key of new Set(keys)) {
      const some = byKey.get(key)
      if (some !== undefined) merge(target, include, array && !inArray, some)
    }
  }
}

/** @throws ApiError 400 when the name is taken by another value */
function merge(target: Json, include: JoinInclude, array: boolean, { documents, count }: Related): void {
  const { collection, strategy, alias } = include
  const single = strategy !== 'nest_array' && !array && count === 1
  const refuse = (what: string, name: string, advice: string): never => {
    throw new ApiError(
      400,
      `Could not include ${what} of \`${collection}\` collection. Expected \`${name}\` to be an array. Try ${advice} alias.`,
    )
  }
  const advice = alias === '' ? 'adding an' : 'renaming the'
  for (const document of documents) {
    if (Object.keys(document).length === 0) continue
    if (strategy !== 'merge') {
      const name = alias || collection
      if (single) target[name] = document
      else if (!push(target, name, document)) refuse('the reference document', name, advice)
      continue
    }
    for (const [key, value] of Object.entries(document)) {
      const name = alias === '' ? key : `${alias}.${key}`
      if (single) target[name] = value
      else if (!push(target, name, value))
        refuse(`the value of \`${key}\` key of the reference document`, name, advice)
    }
  }
}

/** Adds a value to a list. @returns false when something else has the name */
function push(target: Json, name: string, value: unknown): boolean {
  const list = Object.hasOwn(target, name) ? target[name] : []
  if (!Array.isArray(list)) return false
  list.push(value)
  target[name] = list
  return true
}

// =============================================================================
// Decides which related documents a page shows: those matched by the branch of the filter that the document itself
// has passed.

/** By sequence number, the condition on related documents; '' for all of them. */
type Shown = Map<number, string>

/**
 * The documents of a page in groups, each with the condition on their related documents.
 * @returns documents that show none are in no group
 */
export function shownOf(
  context: SearchContext,
  joins: Joins,
  place: JoinPlace,
  seqs: readonly number[],
): Map<string, number[]> {
  const shown = joins.filter && conditions(context, joins, place, joins.filter, seqs)
  const groups = new Map<string, number[]>()
  for (const seq of seqs) {
    const condition = shown === undefined ? '' : shown.get(seq)
    if (condition !== undefined) groups.set(condition, [...(groups.get(condition) ?? []), seq])
  }
  return groups
}

/** @returns undefined if this part of the filter does not join the collection */
function conditions(
  context: SearchContext,
  joins: Joins,
  place: JoinPlace,
  node: FilterNode,
  seqs: readonly number[],
): Shown | undefined {
  if (node.kind === 'clause' || node.kind === 'object') return undefined
  if (node.kind === 'join') {
    if (!joins.isWith(node, place)) return undefined
    // A document that passes a negated join has no related document that meets the condition, so show all of them.
    return new Map(seqs.map((seq) => [seq, node.negated ? '' : node.filter]))
  }
  const parts = node.children.flatMap((child) => {
    const passing = node.kind === 'or' ? passed(context, joins, child, seqs) : seqs
    return conditions(context, joins, place, child, passing) ?? []
  })
  if (parts.length === 0) return undefined
  const shown: Shown = new Map()
  for (const part of parts) {
    for (const [seq, condition] of part) {
      const before = shown.get(seq)
      shown.set(seq, before === undefined ? condition : combined(node.kind, before, condition))
    }
  }
  return shown
}

function combined(kind: 'and' | 'or', a: string, b: string): string {
  if (a === b) return a
  if (kind === 'or') return a === '' || b === '' ? '' : bracketed([a, b], ' || ')
  return bracketed([a, b], ' && ')
}

function passed(
  { sql, schema, columns }: SearchContext,
  joins: Joins,
  node: FilterNode,
  seqs: readonly number[],
): number[] {
  const filter = new Filter(schema, node, joins.documents)
  const source = { sql, columns, read: readAll }
  return [...setOf(seqs)].flatMap(([number, offsets]) =>
    Array.from(atOnce(filter.among(source, number, offsets)), (at) => number * BLOCK + at),
  )
}
