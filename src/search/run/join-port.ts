/** A search's access to other collections. joins.ts implements it, and the Collection object provides the port. */
import type { JoinedDocuments } from '../filter/context'
import type { FilterJoin, FilterNode } from '../filter/parse'
import type { JoinAnswer, JoinPlace, JoinQuestion, SearchScope } from '../types'

/** How a collection reaches others. */
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

/** The joins of one search. */
export interface SearchJoins {
  readonly filter: FilterNode | undefined
  readonly scope: SearchScope
  /** for `compileFilter`: the filter's joins, evaluated */
  readonly documents: JoinedDocuments
  /** Whether a join is only in the key's own filter. Its documents are shown only if the request asks for them. */
  isKeys(join: FilterJoin): boolean
  /**
   * @param parameter where the join is, for the error
   * @throws ApiError 400, the same for a name that the key may not read
   */
  place(name: string, parameter: string): JoinPlace
  /** Whether a join is with this collection, whatever name it uses. */
  isWith(join: FilterJoin, place: JoinPlace): boolean
  /** Whether a name in exclude_fields is this collection's. */
  isCalled(name: string, place: JoinPlace): boolean
  /** The relation with another collection. @throws ApiError 400 when neither refers to the other */
  relation(place: JoinPlace): Promise<Relation>
  /** @throws ApiError what the other collection answers */
  ask(place: JoinPlace, asked: Pick<JoinQuestion, 'filter' | 'want' | 'trusted'>): Promise<JoinAnswer>
  /** The keys of documents here, as JSON texts. */
  keysOf(seqs: readonly number[], on: string): { seq: number; key: string }[]
}
