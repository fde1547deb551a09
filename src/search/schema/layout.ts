/**
 * How a collection is stored in its object's SQLite.
 *
 *     meta(key, value)                          schema, slots, counters: a few rows of JSON
 *     documents(seq, id, body)                  the document as JSON, without its vectors
 *     text_index(t0, t1, ... )                  contentless FTS5 of stems, a column for each indexed string field; t90 is
 *                                               shared by all from the 91st on (tables.ts)
 *     word_index(t0, t1, ... )                  the same for words as they are written (text/analyzer.ts)
 *     text_next, word_next                      the same, being filled to take the place of these (schema.ts)
 *     terms(term)                               the words of word_index, for typos (api/opensearch/query.ts)
 *     columns(seq, s3, s4, n4, ...)             typed scalars: what filters, sorts and facets read; a row a document
 *     columns_1(seq, s47, ...)                  the same for slots 45 to 89, and so on: SQLite allows 100 columns a table
 *     values_5(seq, pos, value)                 a table for each array field that is filtered or faceted
 *     packed_columns(block, slot, packed)       values of 4,096 documents in one row, once they were read (column.ts)
 *     vectors_7(seq, vector)                    a table for each vector field: little-endian float32
 *     packed_7(seq, count, vectors)             the same as int8, in blocks (vectors/packed-vectors.ts)
 *     infix_words_9(id, word), infix_9(word)    tables for each field with `infix` (tables.ts)
 *     pending_embeddings(slot, seq)             vectors that are still to be made
 *     refused_embeddings(slot, seq, error)      vectors that a model would not make
 *
 * `seq` is the document's sequence number. It counts insertions, never repeats, and sorts by age.
 *
 * Each field has a *slot*, a number that is never reused. So a dropped field and a new one of the same name never
 * share values. Text columns are created in advance (FTS5 cannot add any), scalar columns when a field is added. Long
 * strings have no scalar column: filters on them query word_index and then compare the document itself. Geopoints
 * have two columns: latitude in `s`, longitude in `n`; in a values table `value` and `norm`. Older tables have these columns for
 * strings too, and nothing reads them. A geopolygon is a JSON list of latitudes and longitudes. Booleans are 0 and 1. A missing
 * optional field is NULL.
 */
import * as v from 'valibot'
import { once } from '../../lib/once'
import { type CollectionSchema, collectionShape, type Field, fieldShape } from '../types'

/** Where a field's values are stored. */
export const slotShape = once(() =>
  v.object({
    /** names s<slot>, n<slot>, values_<slot>, vectors_<slot> and packed_<slot> */
    slot: v.number(),
    /** number of its text in text_index and word_index, 0 to 89 that of its column; only for indexed string fields */
    text: v.optional(v.number()),
    /** it has an index of the parts of its words (tables.ts) */
    infix: v.optional(v.literal(true)),
  }),
)
export type FieldSlot = v.InferOutput<ReturnType<typeof slotShape>>

/** A collection's schema as `meta` holds it. */
export const storedSchema = once(() =>
  v.object({
    ...collectionShape().entries,
    /** by field name */
    slots: v.record(v.string(), slotShape()),
    nextSlot: v.number(),
    nextText: v.number(),
    /** how many columns text_index and word_index have each */
    textColumns: v.number(),
    /** names of fields whose indexes lack documents until a job has filled them again (tables.ts) */
    filling: v.optional(v.array(v.string())),
    /** links from other collections to this one */
    linked: v.optional(
      v.object({
        /** fields that others refer to; false while the keys of older documents are missing */
        keyed: v.record(v.string(), v.boolean()),
        /** reference fields of other collections that refer to this one, to its field `target` */
        referrers: v.array(
          v.object({ objectId: v.string(), field: v.string(), target: v.string(), cascades: v.boolean() }),
        ),
      }),
    ),
    /**
     * By field name: embedding fields whose new vectors are being made (embedding/queue.ts), with their future definition and the
     * slot of the new vectors.
     */
    replacing: v.optional(v.record(v.string(), v.object({ field: fieldShape(), slot: slotShape() }))),
  }),
)
export type StoredSchema = v.InferOutput<ReturnType<typeof storedSchema>>
export type Referrer = NonNullable<StoredSchema['linked']>['referrers'][number]
export type Replacement = NonNullable<StoredSchema['replacing']>[string]

/** A schema without what only the collection's object needs. */
export function publicSchema(stored: StoredSchema): CollectionSchema {
  const { slots, nextSlot, nextText, textColumns, replacing, filling, linked, ...schema } = stored
  return schema
}

/** The replacement of a field, if one is under way. */
export const replacementOf = (schema: StoredSchema, name: string): Replacement | undefined =>
  schema.replacing !== undefined && Object.hasOwn(schema.replacing, name) ? schema.replacing[name] : undefined

export const isString = (field: Field): boolean =>
  field.type === 'string' || field.type === 'string[]' || field.type === 'string*' || field.type === 'auto'

export const isArray = (field: Field): boolean => field.type.endsWith('[]') && !isVector(field)

export const isNumber = (field: Field): boolean =>
  /^(int32|int64|float)(\[\])?$/.test(field.type) && !isVector(field)

/** Holds whole numbers of 64 bits, which a JavaScript number may round. */
export const isInt64 = (field: Field): boolean => field.type === 'int64' || field.type === 'int64[]'

export const isBool = (field: Field): boolean => field.type === 'bool' || field.type === 'bool[]'

export const isGeopoint = (field: Field): boolean => field.type === 'geopoint' || field.type === 'geopoint[]'

export const isGeopolygon = (field: Field): boolean => field.type === 'geopolygon'

/** A float[] with a dimension or an embedder is a vector. Any other float[] is a list of numbers. */
export const isVector = (field: Field): boolean =>
  field.type === 'float[]' && (field.num_dim !== undefined || field.embed !== undefined)

/** Whether the field refers to another collection. The versions before joins stored `reference` alone. */
export const isReference = (field: Field): boolean =>
  field.reference !== undefined && field.async_reference !== undefined

/** Whether the field has a column in text_index and word_index. */
export const isSearchable = (field: Field): boolean => field.index && isString(field)

/**
 * Whether the field has typed values: `columns.s<slot>` for a scalar, `values_<slot>` for an array. True of facets
 * and sortable strings (`sort: true`), and of every indexed number, boolean and geopoint.
 */
export const hasValues = (field: Field): boolean =>
  field.index &&
  (isNumber(field) ||
    isBool(field) ||
    isGeopoint(field) ||
    isGeopolygon(field) ||
    (isString(field) && (field.facet || field.sort)))

// A slot has at most two columns, so 45 slots stay under SQLite's 100 columns.
const SLOTS_PER_TABLE = 45

/**
 * The table that holds `s<slot>` and `n<slot>`. It is created when a field first needs it, with a row for every
 * document.
 */
export const columnsTable = (slot: FieldSlot): string => {
  const table = Math.floor(slot.slot / SLOTS_PER_TABLE)
  return table === 0 ? 'columns' : `columns_${table}`
}

export const scalarColumn = (slot: FieldSlot): string => `s${slot.slot}`

/** A geopoint's longitude. */
export const longitudeColumn = (slot: FieldSlot): string => `n${slot.slot}`

export const valuesTable = (slot: FieldSlot): string => `values_${slot.slot}`

export const vectorsTable = (slot: FieldSlot): string => `vectors_${slot.slot}`
export const packedTable = (slot: FieldSlot): string => `packed_${slot.slot}`
