/** Pipelines of searches and of documents: checked on arrival, stored as sent, and chosen by a search or a new index. */

import { namesOf } from '../../lib/nearest'
import { readStoredObject } from '../../lib/stored-json'
import { STATIC_EMBEDDER } from '../../models/static-embedder'
import * as registry from '../../registry/resources'
import type { Normalization } from '../../search/merge-lists'
import type { Call } from '../http/router'
import { answer, illegalArgument, missing, OpenSearchError, parseError, unsupported } from './errors'
import { isEnabled, RAG } from './mapping'
import { isObject, type Json, onlyEntry, own, readObject } from './route'
import { starPattern } from './source'

/** The settings of a RAG processor. */
export interface RagProcessor {
  tag: string | undefined
  modelId: string
  fields: string[]
  llmModel?: string
  system: string
  instructions: string
  ignoresFailure: boolean
}

export interface Pipeline {
  rag?: RagProcessor
  normalization?: Normalization
  /** whether follow-ups are rewritten before they are searched */
  rewrites: boolean
  /** present: the request brought it itself, so its texts and names are the caller's and not the operator's */
  inline?: true
}

const TOP = namesOf(`
  description version request_processors response_processors phase_results_processors
`)
const RAG_TYPE = 'retrieval_augmented_generation'
const MOST_RANK_CONSTANT = 10_000

/** Processors by phase. */
const PROCESSORS: Record<string, Record<string, (reader: Properties, pipeline: Pipeline) => void>> = {
  request_processors: {
    // A field has one model here, which `neural` uses.
    neural_query_enricher: (reader) => {
      reader.text('default_model_id')
      reader.object('neural_field_default_id')
    },
    // OpenSearch accepts this processor and does nothing. Here it rewrites a follow-up before it is searched.
    question_rewrite: (reader, pipeline) => {
      reader.text('model_id')
      pipeline.rewrites = true
    },
  },
  response_processors: {
    [RAG_TYPE]: (reader, pipeline) => {
      const llmModel = reader.text('llm_model')
      pipeline.rag = {
        tag: reader.tag,
        modelId: reader.requiredText('model_id'),
        fields: reader.texts('context_field_list'),
        ...(llmModel !== undefined && { llmModel }),
        system: reader.text('system_prompt') ?? '',
        instructions: reader.text('user_instructions') ?? '',
        ignoresFailure: reader.ignoresFailure,
      }
    },
  },
  phase_results_processors: {
    'score-ranker-processor': (reader, pipeline) => {
      const combination = reader.object('combination')
      const { technique, rank_constant = 60 } = combination
      const rankConstant = Number(rank_constant)
      if (!(rankConstant >= 1 && rankConstant <= MOST_RANK_CONSTANT))
        throw illegalArgument('rank constant must be in the interval between 1 and 10000')
      pipeline.normalization = {
        technique: chosen('combination', technique, ['rrf']),
        combination: 'arithmetic_mean',
        rankConstant,
        ...weightsOf(combination),
      }
    },
    'normalization-processor': (reader, pipeline) => {
      const normalization = reader.object('normalization')
      const combination = reader.object('combination')
      pipeline.normalization = {
        technique: chosen('normalization', normalization.technique, ['min_max', 'l2']),
        combination: chosen('combination', combination.technique, [
          'arithmetic_mean',
          'geometric_mean',
          'harmonic_mean',
        ]),
        ...weightsOf(combination),
      }
    },
  },
}

function chosen(what: string, given: unknown, known: string[]): string {
  if (given === undefined) return known[0]!
  if (typeof given === 'string' && known.includes(given)) return given
  throw illegalArgument(`provided ${what} technique is not supported: ${String(given)}`)
}

/** The weights of a combination, if it has some. @throws ApiError 400 */
function weightsOf({ parameters }: Json): { weights?: number[] } {
  const { weights: given } = isObject(parameters) ? parameters : {}
  if (given === undefined) return {}
  const isList =
    Array.isArray(given) && given.every((each) => typeof each === 'number' && each >= 0 && each <= 1)
  const sum = isList ? given.reduce((total, each) => total + each, 0) : 0
  if (!isList || Math.abs(sum - 1) > 0.01) {
    throw illegalArgument(
      `sum of weights for combination must be equal to 1.0, submitted weights: ${JSON.stringify(given)}`,
    )
  }
  return { weights: given }
}

type Properties = ReturnType<typeof propertiesOf>

/** Reads the properties of one processor. None may be left over at the end. */
function propertiesOf(type: string, given: unknown) {
  const { tag: named, description: _, ignore_failure, ...left } = isObject(given) ? given : {}
  const tag = typeof named === 'string' ? named : undefined
  const fault = (name: string, message: string): OpenSearchError =>
    parseError(`[${name}] ${message}`, {
      processor_type: type,
      ...(tag !== undefined && { processor_tag: tag }),
      property_name: name,
    })
  /** @param kind what a property is that fits */
  const read = <Value>(name: string, kind: string, fits: (value: unknown) => value is Value) => {
    const value = left[name] ?? undefined
    delete left[name]
    if (value === undefined || fits(value)) return value
    throw fault(name, `property isn't a ${kind}, but of type [${javaType(value)}]`)
  }
  const required = <Value>(name: string, value: Value | undefined): Value => {
    if (value === undefined) throw fault(name, 'required property is missing')
    return value
  }
  const text = (name: string) => read(name, 'string', (value) => typeof value === 'string')
  return {
    tag,
    ignoresFailure: String(ignore_failure) === 'true',
    text,
    requiredText: (name: string): string => required(name, text(name)),
    object: (name: string): Json => read(name, 'map', isObject) ?? {},
    texts: (name: string): string[] => {
      const value: unknown[] = required(name, read(name, 'list', Array.isArray))
      if (value.length === 0) throw fault(name, "required property can't be empty.")
      return value.map(String)
    },
    /** @throws ApiError 400 for an unknown property */
    end: (): void => {
      const unknown = Object.keys(left)
      if (unknown.length === 0) return
      const name = tag === undefined ? type : `${type}:${tag}`
      throw parseError(
        `processor [${name}] doesn't support one or more provided configuration parameters: [${unknown.join(', ')}]`,
      )
    },
  }
}

/** The type of a value in OpenSearch's words: it is a Java program. */
function javaType(value: unknown): string {
  if (typeof value === 'string') return 'java.lang.String'
  if (typeof value === 'boolean') return 'java.lang.Boolean'
  if (typeof value === 'number') return Number.isInteger(value) ? 'java.lang.Integer' : 'java.lang.Double'
  return Array.isArray(value) ? 'java.util.ArrayList' : 'java.util.HashMap'
}

const strangeKeys = (id: string, keys: string[]): OpenSearchError =>
  parseError(
    `pipeline [${id}] doesn't support one or more provided configuration parameters [${keys.join(', ')}]`,
  )

/** A pipeline as a search runs it. @throws ApiError 400 that names what is wrong */
function parsePipeline(body: Json, id: string): Pipeline {
  const unknown = Object.keys(body).filter((key) => !TOP.includes(key))
  if (unknown.length > 0) throw strangeKeys(id, unknown)
  const pipeline: Pipeline = { rewrites: false }
  for (const [phase, known] of Object.entries(PROCESSORS)) {
    const list = body[phase] ?? []
    if (!Array.isArray(list))
      throw parseError(`[${phase}] property isn't a list, but of type [${javaType(list)}]`)
    for (const each of list) {
      const [type, properties] = onlyEntry(each) ?? []
      if (type === undefined) throw parseError(`[${phase}] takes objects of one processor each`)
      const read = own(known, type)
      if (read === undefined) throw illegalArgument(`Invalid processor type ${type}`)
      const reader = propertiesOf(type, properties)
      read(reader, pipeline)
      reader.end()
    }
  }
  return pipeline
}

/** @throws OpenSearchError 500 if the feature is switched off */
export async function requireRag(env: Cloudflare.Env, find?: registry.FindResource): Promise<void> {
  if (await isEnabled(env, RAG, find)) return
  throw new OpenSearchError(500, 'm_l_exception', `${RAG} is not enabled.`)
}

type Kind = 'pipeline' | 'ingest_pipeline'

export const putPipeline =
  (kind: Kind) =>
  async ({ env, path, request }: Call): Promise<Json> => {
    const id = path.id!
    const body = await readObject(request)
    if (kind === 'ingest_pipeline') await embeddingsOf(env, body, id)
    else if (parsePipeline(body, id).rag !== undefined) await requireRag(env)
    await registry.storeOne(env, { kind, id, body: JSON.stringify(body) })
    return { acknowledged: true }
  }

/** What to do instead of a processor of documents. */
const INSTEAD: Readonly<Record<string, string>> = {
  text_chunking: 'leave it out, answers read texts by passages',
  sparse_encoding: 'use [text_embedding] and a knn_vector',
}

/**
 * Reads a pipeline of documents. Its one processor is `text_embedding`, by a model that runs here.
 * @returns the field that each vector is made of, by the vector's name. @throws ApiError 400
 */
async function embeddingsOf(env: Cloudflare.Env, body: Json, id: string): Promise<Record<string, string>> {
  const { description: _, version: __, processors = [], ...others } = body
  const unknown = Object.keys(others)
  if (unknown.length > 0 || !Array.isArray(processors)) throw strangeKeys(id, unknown)
  const made: Record<string, string> = {}
  for (const each of processors) {
    const [type = '', properties] = onlyEntry(each) ?? []
    const instead = INSTEAD[type] ?? 'prepare the documents before they are sent'
    if (type !== 'text_embedding') throw unsupported(`The processor [${type}]: ${instead}; it`)
    const reader = propertiesOf(type, properties)
    const model = reader.requiredText('model_id')
    const row = await registry.findOne(env, 'model', model)
    if (row === undefined || registry.modelIn(row).connector !== undefined) {
      throw unsupported(
        `[text_embedding] by [${model}], which is no TEXT_EMBEDDING: give the field [embed]; it`,
      )
    }
    for (const [text, vector] of Object.entries(reader.object('field_map'))) made[String(vector)] = text
    reader.end()
  }
  return made
}

/** Has the vectors that a pipeline of documents makes be made by Parley. @throws ApiError 400 */
export async function embedFields(
  env: Cloudflare.Env,
  fields: Json[],
  pipeline: string | undefined,
): Promise<Json[]> {
  if (pipeline === undefined || pipeline === '_none') return fields
  const row = await registry.findOne(env, 'ingest_pipeline', pipeline)
  if (row === undefined) throw illegalArgument(`pipeline with id [${pipeline}] does not exist`)
  const made = await embeddingsOf(env, readStoredObject(row.body), pipeline)
  const missing = Object.keys(made).find(
    (name) => !fields.some((field) => field.name === name && field.num_dim),
  )
  if (missing !== undefined)
    throw illegalArgument(`[${missing}] of the pipeline [${pipeline}] has to be mapped as knn_vector`)
  const sources = new Set(Object.values(made))
  return fields.map((field) => {
    const name = String(field.name)
    const from = own(made, name)
    if (from !== undefined)
      return { ...field, embed: { from: [from], model_config: { model_name: STATIC_EMBEDDER } } }
    return sources.has(name) ? { ...field, type: 'string' } : field
  })
}

async function matching(
  env: Cloudflare.Env,
  kind: Kind,
  expression: string,
): Promise<registry.ResourceRow[]> {
  const patterns = expression.split(',').map((part) => starPattern(part))
  return (await registry.findAll(env, kind)).filter(({ id }) => patterns.some((pattern) => pattern.test(id)))
}

export const getPipelines =
  (kind: Kind) =>
  async ({ env, path }: Call): Promise<unknown> => {
    const rows = await matching(env, kind, path.id ?? '*')
    const found = Object.fromEntries(rows.map(({ id, body }) => [id, readStoredObject(body)]))
    return rows.length === 0 ? answer({}, 404) : found
  }

export const deletePipelines =
  (kind: Kind) =>
  async ({ env, path }: Call): Promise<Json> => {
    const expression = path.id!
    const rows = await matching(env, kind, expression)
    if (rows.length === 0 && !expression.includes('*')) {
      throw missing(`pipeline [${expression}] is missing`)
    }
    for (const { id } of rows) await registry.deleteOne(env, kind, id)
    return { acknowledged: true }
  }

/** The pipeline of a search: named, inline, or the index's default. undefined: none. @throws ApiError 400 */
export async function pipelineOf(
  find: registry.FindResource,
  named: string | undefined,
  given: unknown,
  otherwise: () => Promise<string | undefined>,
): Promise<Pipeline | undefined> {
  if (named !== undefined && isObject(given)) {
    throw illegalArgument(
      'Both named and inline search pipeline were specified. Please only specify one or the other.',
    )
  }
  if (isObject(given)) return { ...parsePipeline(given, '_ad_hoc_pipeline'), inline: true }
  if (given !== undefined && typeof given !== 'string')
    throw illegalArgument('[search_pipeline] takes a name or a pipeline')
  const name = named ?? given ?? (await otherwise())
  if (name === undefined || name === '_none') return undefined
  const row = await find('pipeline', name)
  if (row === undefined) throw illegalArgument(`Pipeline ${name} is not defined`)
  return parsePipeline(readStoredObject(row.body), name)
}
