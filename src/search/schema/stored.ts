/** A collection's schema as `meta` holds it. */
import * as v from 'valibot'
import { once } from '../../lib/once'
import { readMeta, writeMeta } from '../meta'
import { type EmbeddingModelConfig, FIELD_TYPES, type Field, VECTOR_DISTANCES } from '../types'
import type { FieldSlot, StoredSchema } from './layout'
import { isObject } from './values'

export const slotShape: () => v.GenericSchema<FieldSlot> = once(() =>
  v.looseObject({
    slot: v.number(),
    text: v.optional(v.number()),
    infix: v.optional(v.literal(true)),
  }),
)

/** The model checks the rest of a config. It stays as its owner sent it. */
const modelConfig = v.custom<EmbeddingModelConfig>(
  (config) => isObject(config) && typeof config.model_name === 'string',
)

export const fieldShape: () => v.GenericSchema<Field> = once(() =>
  v.looseObject({
    name: v.string(),
    type: v.picklist(FIELD_TYPES),
    facet: v.boolean(),
    optional: v.boolean(),
    index: v.boolean(),
    sort: v.boolean(),
    infix: v.boolean(),
    locale: v.string(),
    stem: v.boolean(),
    store: v.boolean(),
    stem_dictionary: v.string(),
    stem_words: v.optional(v.string()),
    token_separators: v.optional(v.array(v.string())),
    symbols_to_index: v.optional(v.array(v.string())),
    truncate_len: v.optional(v.number()),
    num_dim: v.optional(v.number()),
    vec_dist: v.optional(v.picklist(VECTOR_DISTANCES)),
    hnsw_params: v.optional(v.record(v.string(), v.unknown())),
    embed: v.optional(
      v.looseObject({
        from: v.array(v.string()),
        model_config: modelConfig,
        served_by: v.optional(v.string()),
      }),
    ),
    reference: v.optional(v.string()),
    async_reference: v.optional(v.boolean()),
    cascade_delete: v.optional(v.boolean()),
    nested: v.optional(v.boolean()),
  }),
)

const storedSchema: () => v.GenericSchema<StoredSchema> = once(() =>
  v.looseObject({
    name: v.string(),
    fields: v.array(fieldShape()),
    default_sorting_field: v.string(),
    enable_nested_fields: v.boolean(),
    token_separators: v.array(v.string()),
    symbols_to_index: v.array(v.string()),
    synonym_sets: v.optional(v.array(v.string())),
    curation_sets: v.optional(v.array(v.string())),
    metadata: v.optional(v.record(v.string(), v.unknown())),
    slots: v.record(v.string(), slotShape()),
    nextSlot: v.number(),
    nextText: v.number(),
    textColumns: v.number(),
    filling: v.optional(v.array(v.string())),
    linked: v.optional(
      v.object({
        keyed: v.record(v.string(), v.boolean()),
        referrers: v.array(
          v.object({ objectId: v.string(), field: v.string(), target: v.string(), cascades: v.boolean() }),
        ),
      }),
    ),
    replacing: v.optional(v.record(v.string(), v.looseObject({ field: fieldShape(), slot: slotShape() }))),
  }),
)

export const readSchema = (sql: SqlStorage): StoredSchema | undefined =>
  readMeta(sql, 'schema', storedSchema())

export const writeSchema = (sql: SqlStorage, schema: StoredSchema): void => writeMeta(sql, 'schema', schema)
