/** The context in which clauses are compiled, and the errors that they report. */
import { ApiError } from '../../errors'
import type { Range } from '../range'
import type { StoredSchema } from '../schema/layout'
import type { Field } from '../types'
import type { FilterJoin, FilterNode } from './parse'
import { joinKey } from './print'

/**
 * The documents with a related one, in ascending order of sequence number, for every join of a filter. The key is the
 * printed join without its negation.
 */
export type JoinedDocuments = ReadonlyMap<string, ArrayLike<number>>

export interface FilterContext {
  sql: SqlStorage
  schema: StoredSchema
  /** the documents that the filter runs on */
  range: Range
  joins: JoinedDocuments | undefined
  onRead?: OnRead | undefined
  /** what evaluate.ts has prepared for parts of this filter */
  evaluations: Map<FilterNode, Evaluation>
}

/**
 * Called when an operand of a filter runs while the filter is compiled.
 * @param documents how many it read and parsed
 */
export type OnRead = (documents: number) => void

/** A document as the tests of a filter see it. */
export interface Read {
  seq: number
  id: string
  /** the values of a field, by its place among the fields that are read */
  values: (place: number) => readonly unknown[]
  /** as it is stored, with exact numbers */
  whole: () => unknown
}

/** A part of a filter, ready to be evaluated over documents. */
export interface Evaluation {
  /** whose values are read */
  fields: Field[]
  /** whether documents themselves are read, and not only columns */
  reads: boolean
  passes: (document: Read) => boolean
  /** of a document, as rows (cost.ts) */
  cost: number
}

/** The documents with a related one. @throws ApiError 400 if joins are not supported here */
export function joinedBy({ joins }: FilterContext, join: FilterJoin): ArrayLike<number> {
  const seqs = joins?.get(joinKey(join))
  if (seqs !== undefined) return seqs
  throw new ApiError(400, `The join \`$${join.collection}(...)\` is not possible here.`)
}

export const filterError = (field: string, what: string): ApiError =>
  new ApiError(400, `Error with filter field \`${field}\`: ${what}`)
