/** PATCH /collections/:name: reads the request, checks it against schema and documents, and applies it. */

import { ApiError, collectionGone } from '../../errors'
import { coerceDocument, FieldFault, matches } from '../documents/document'
import type { Store } from '../documents/store'
import { beginReplacement, cancelReplacement, discard, discardVectors } from '../embedding/queue'
import { columnOf } from '../fragment'
import { refuse } from '../refused'
import { openWhatOpens, sealFields } from '../schema/embedding-secrets'
import { checkEmbedSources, checkFields, isDynamic, parseField } from '../schema/field'
import {
  isSearchable,
  isVector,
  packedTable,
  replacementOf,
  type StoredSchema,
  vectorsTable,
} from '../schema/layout'
import { planOf } from '../schema/plan'
import { beginFormer, checkReferences, formerOf, freeTexts, maskField } from '../schema/schema'
import {
  addField,
  fillAgain,
  outgrowsTextIndex,
  rebuildTextIndex,
  removeField,
  takeStemWords,
} from '../schema/tables'
import { isObject } from '../schema/values'
import { curationSets, synonymSets } from '../sets/curation'
import { DEFAULT_LENGTH } from '../text/analyzer'
import type { Field } from '../types'
import { discoverDimensions } from '../vectors/embedders'

type Json = Record<string, unknown>

/** The changes that a PATCH asks for, checked against the schema. */
interface Alteration {
  dropped: Field[]
  added: Field[]
  /**
   * embedding fields that are dropped and added in one request: each stays as it is until all new vectors are made
   */
  replaced: Field[]
  /** embedding fields of which only the api_key changes */
  rekeyed: Field[]
  metadata?: Json
  synonym_sets?: string[]
  curation_sets?: string[]
  /** the reply: the request, with keys masked */
  echo: Json
}

/** Vectors of a dropped field that its documents get back as plain values. */
export interface CarriedVectors {
  name: string
  table: string
}

const ALTERABLE = new Set(['fields', 'metadata', 'synonym_sets', 'curation_sets'])
const FIELDS_MESSAGE =
  'The `fields` value should be an array of objects containing the field `name` and other properties.'

/**
 * Reads and checks a PATCH. A field that is being replaced counts as its replacement. Keys are compared in clear,
 * since sealing the same key twice gives different results.
 * @throws ApiError 400
 */
export async function readAlteration(
  body: unknown,
  schema: StoredSchema,
  env: Cloudflare.Env,
): Promise<Alteration> {
  const fields = schema.fields.map((field) => replacementOf(schema, field.name)?.field ?? field)
  return parseAlteration(body, { ...schema, fields: await openWhatOpens(fields, env) })
}

/** @throws ApiError 404 for sets that do not exist */
async function requireSets({ synonym_sets, curation_sets }: Alteration, env: Cloudflare.Env): Promise<void> {
  const db = env.DB
  for (const name of synonym_sets ?? []) {
    if ((await synonymSets.find(db, name)) === undefined) {
      throw new ApiError(404, `Synonym set \`${name}\` not found.`)
    }
  }
  for (const name of curation_sets ?? []) {
    if ((await curationSets.find(db, name)) === undefined) {
      throw new ApiError(404, `Curation set \`${name}\` not found.`)
    }
  }
}

/**
 * Prepares a PATCH: asks models for their dimensions, seals keys, checks documents and sets.
 * @throws ApiError 400, 404
 */
export async function prepareAlteration(
  alteration: Alteration,
  store: Store,
  env: Cloudflare.Env,
): Promise<void> {
  for (const changed of ['added', 'replaced', 'rekeyed'] as const) {
    await discoverDimensions(alteration[changed], env)
    alteration[changed] = await takeStemWords(await sealFields(alteration[changed], env), env)
  }
  await requireSets(alteration, env)
  await checkDocuments(store, alteration.added)
}

/** @throws ApiError 400 */
function parseAlteration(body: unknown, schema: StoredSchema): Alteration {
  if (!isObject(body)) refuse('Bad JSON.')
  if (Object.keys(body).length === 0) refuse('Alter payload is empty.')
  for (const key of Object.keys(body)) {
    if (!ALTERABLE.has(key))
      refuse('Only `fields`, `metadata` and `synonym_sets` can be updated at the moment.')
  }
  const alteration: Alteration = { dropped: [], added: [], replaced: [], rekeyed: [], echo: { ...body } }
  if ('metadata' in body) {
    if (!isObject(body.metadata)) refuse('The `metadata` value should be an object.')
    alteration.metadata = body.metadata
  }
  for (const key of ['synonym_sets', 'curation_sets'] as const) {
    const sets = body[key]
    if (sets === undefined) continue
    if (!Array.isArray(sets) || !sets.every((name) => typeof name === 'string')) {
      refuse(`The \`${key}\` value should be an array.`)
    }
    alteration[key] = sets
  }
  if ('fields' in body) {
    if (!Array.isArray(body.fields) || body.fields.length === 0) refuse(FIELDS_MESSAGE)
    parseFieldChanges(body.fields, schema, alteration)
    // The reply shows a change masked, with the default that Typesense 30 adds.
    alteration.echo.fields = body.fields.map((change: Json) =>
      'drop' in change ? change : { truncate_len: DEFAULT_LENGTH, ...maskField(change) },
    )
  }
  return alteration
}

function parseFieldChanges(changes: unknown[], schema: StoredSchema, alteration: Alteration): void {
  const known = new Map(schema.fields.map((field) => [field.name, field]))
  for (const change of changes) {
    if (!isObject(change) || typeof change.name !== 'string') refuse(FIELDS_MESSAGE)
    if (change.name === 'id') refuse('Field `id` cannot be altered.')
  }
  const drops = (changes as Json[]).filter((change) => 'drop' in change)
  const dropped = new Set<Field>()
  for (const { name, drop } of drops as { name: string; drop: unknown }[]) {
    if (drop !== true) refuse(`Field \`${name}\` must have a drop value of \`true\`.`)
    const field = known.get(name)
    if (field === undefined) refuse(`Field \`${name}\` is not part of collection schema.`)
    dropped.add(field)
    // Dropping an object drops its children; dropping a pattern drops the fields that it matched.
    for (const other of schema.fields) {
      if (field.type.startsWith('object') && other.name.startsWith(`${name}.`)) dropped.add(other)
      if (isDynamic(field) && name !== '.*' && other.detected === true && matches(name, other.name)) {
        dropped.add(other)
      }
    }
  }
  const kept = schema.fields.filter((field) => !dropped.has(field))
  for (const change of (changes as Json[]).filter((candidate) => !('drop' in candidate))) {
    const old = kept.find(({ name }) => name === change.name)
    if (old === undefined) alteration.added.push(parseField(change, schema.enable_nested_fields))
    else alteration.rekeyed.push(rekeyed(old, change))
  }
  const all = [...kept, ...alteration.added]
  for (const field of alteration.added) checkEmbedSources(field, all)
  if (all.filter(({ name }) => name === '.*').length > 1) refuse('There can be only one field named `.*`.')
  checkFields(all, schema.default_sorting_field)
  checkReferences(schema.name, all)
  for (const field of kept) checkEmbedSources(field, all)
  const isReplaced = ({ name, embed }: Field): boolean =>
    embed !== undefined && [...dropped].some((old) => old.name === name && old.embed !== undefined)
  alteration.replaced = alteration.added.filter(isReplaced)
  const names = new Set(alteration.replaced.map(({ name }) => name))
  alteration.added = alteration.added.filter(({ name }) => !names.has(name))
  alteration.dropped = [...dropped].filter(({ name }) => !names.has(name))
}

/** The only change that needs no drop first: a new key for the embedder. */
function rekeyed(old: Field, change: Json): Field {
  const embed = isObject(change.embed) ? change.embed : {}
  const config = isObject(embed.model_config) ? embed.model_config : {}
  const oldConfig = old.embed?.model_config
  const same =
    oldConfig !== undefined &&
    JSON.stringify(embed.from) === JSON.stringify(old.embed?.from) &&
    typeof config.api_key === 'string' &&
    config.api_key !== oldConfig.api_key &&
    Object.entries(config).every(([key, value]) => key === 'api_key' || oldConfig[key] === value)
  if (!same) {
    refuse(
      `Field \`${old.name}\` is already part of the schema: To change this field, drop it first before adding it back to the schema.`,
    )
  }
  return {
    ...old,
    embed: { from: old.embed!.from, model_config: { ...oldConfig, api_key: config.api_key as string } },
  }
}

/** Documents checked before other calls get a turn. */
const CHECK_STEP = 500

/**
 * Checks that the values in stored documents fit the new fields. Other calls get a turn every few hundred documents.
 * @throws ApiError 400
 */
async function checkDocuments(store: Store, added: Field[]): Promise<void> {
  const fields = added.filter((field) => !isDynamic(field))
  if (fields.length === 0 || store.count === 0) return
  const plan = planOf({ ...store.schema, fields, slots: {} })
  // If all new fields are optional, only documents that mention one of them can be wrong.
  const mention = fields.every(({ optional }) => optional)
    ? `AND (${fields.map(() => 'instr(body, ?) > 0').join(' OR ')})`
    : ''
  const mentions = mention === '' ? [] : fields.map(({ name }) => JSON.stringify(name.split('.').at(-1)))
  const where = mentions.length > 50 ? '' : mention
  let after = -1
  for (;;) {
    const seqs = columnOf<number>(
      store.sql,
      `SELECT seq FROM documents WHERE seq > ? ${where} ORDER BY seq LIMIT ${CHECK_STEP}`,
      after,
      ...(where === '' ? [] : mentions),
    )
    for (const document of store.read(seqs, plan.vectors.length === 0, true).values()) {
      try {
        coerceDocument(plan, document, 'coerce_or_reject', false)
      } catch (error) {
        throw error instanceof ApiError ? new ApiError(400, alterMessage(error)) : error
      }
    }
    if (seqs.length < CHECK_STEP) return
    after = seqs.at(-1) as number
    await scheduler.wait(0)
    if (store.closed) throw collectionGone()
  }
}

/** Typesense's wording of a document's error in reply to a PATCH. */
function alterMessage(error: ApiError): string {
  const incompatible =
    'Schema change is incompatible with the type of documents already stored in this collection.'
  if (!(error instanceof FieldFault)) return `${incompatible} error: ${error.message}`
  const { field, needs } = error
  return needs === undefined
    ? `Field \`${field}\` has been declared in the schema, but is not found in the documents already present in the collection. If you still want to add this field, set it as \`optional: true\`.`
    : `${incompatible} Existing data for field \`${field}\` cannot be coerced into ${needs}.`
}

/**
 * Changes schema and tables. Belongs in a transaction.
 * @returns vectors that documents get back, and whether documents have to be indexed again
 */
export function applyAlteration(
  store: Store,
  alteration: Alteration,
): { carried: CarriedVectors[]; reindexing: boolean } {
  const schema = structuredClone(store.schema)
  const carried: CarriedVectors[] = []
  const { dropped, added } = alteration
  const former = store.count > 0 ? formerOf(schema, dropped, added) : undefined
  const texts = former === undefined ? [] : freeTexts(schema)
  for (const { name } of dropped) {
    const field = schema.fields.find((candidate) => candidate.name === name) as Field
    const slot = schema.slots[name]
    if (former?.fields.includes(field)) {
      schema.fields = schema.fields.filter((other) => other !== field)
      delete schema.slots[name]
      continue
    }
    cancelReplacement(store, schema, name)
    if (slot !== undefined && isVector(field)) {
      // A model can make its vectors again. Vectors that came with the documents must not be lost.
      if (field.embed === undefined) {
        carried.push({ name, table: vectorsTable(slot) })
        discard(store.sql, [packedTable(slot)])
      } else {
        discardVectors(store, slot)
      }
      store.vectorFields.retire(slot)
    }
    removeField(store.sql, schema, field)
  }
  for (const field of added)
    addField(store.sql, schema, field, isSearchable(field) ? texts.shift() : undefined)
  for (const field of alteration.replaced) beginReplacement(store, schema, field)
  for (const field of alteration.rekeyed) {
    const begun = replacementOf(schema, field.name)
    if (begun !== undefined) begun.field = field
    else schema.fields = schema.fields.map((old) => (old.name === field.name ? field : old))
  }
  if (alteration.metadata !== undefined) schema.metadata = alteration.metadata
  if (alteration.synonym_sets !== undefined) schema.synonym_sets = alteration.synonym_sets
  if (alteration.curation_sets !== undefined) schema.curation_sets = alteration.curation_sets
  const rebuilt = outgrowsTextIndex(schema)
  if (rebuilt) rebuildTextIndex(store.sql, schema)
  const reindexing = store.count > 0 && (rebuilt || added.length > 0 || carried.length > 0)
  // A field that was there before must not be found in part, even if a document brings it back.
  if (reindexing) fillAgain(schema, dropped)
  else delete schema.filling
  if (former !== undefined) beginFormer(store.sql, schema, former)
  store.saveSchema(schema)
  return { carried, reindexing }
}
