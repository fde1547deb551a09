/**
 * The scripts that measure vectors exactly. They are the ones in OpenSearch's documentation ("Exact k-NN with scoring script",
 * "Painless extensions"), and those that LangChain and LlamaIndex send. No script is run: what each says is known.
 */
import type { VectorDistance } from '../../search/types'
import { parsingError, unsupported } from './errors'
import { DISTANCES } from './mapping'
import { isObject, type Json } from './route'

/** What a script asks for. */
export interface Measured {
  field: string
  vector: number[]
  distance: VectorDistance
}

const FUNCTIONS: Record<string, VectorDistance> = { '1/l2Squared': 'l2', cosineSimilarity: 'cosine' }
const BRACKETS = /^(1(?:\.0)?\s*\/\s*)?\((.*)\)$/s
const MEASURE = /^1(?:\.0)?\s*\+\s*(\w+)\(\s*params\.(\w+)\s*,\s*doc\[(['"])([^'"\]]+)\3\]\s*\)$/

/** @throws ApiError 400 for any other script */
export function readScript(script: unknown): Measured {
  if (!isObject(script) || typeof script.source !== 'string')
    throw parsingError('[script_score] takes a [script]')
  const params = isObject(script.params) ? script.params : {}
  const { source, lang = 'painless' } = script
  const measured =
    lang === 'knn' ? ofPlugin(source, params) : lang === 'painless' ? ofPainless(source, params) : undefined
  if (measured?.distance === undefined) {
    throw unsupported(
      'A [script] other than [knn_score], `1/(1 + l2Squared(params.query_value, doc[...]))` and `1 + cosineSimilarity(...)`',
    )
  }
  const { field, vector, distance } = measured
  if (
    typeof field !== 'string' ||
    !Array.isArray(vector) ||
    !vector.every((part) => typeof part === 'number')
  ) {
    throw parsingError('The [script] of [script_score] takes the name of a field, and a list of numbers')
  }
  return { field, vector, distance }
}

type Given = { field: unknown; vector: unknown; distance: VectorDistance | undefined }

const own = <T>(table: Record<string, T>, name: string): T | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined

const ofPlugin = (source: string, { field, query_value, space_type }: Json): Given | undefined =>
  source === 'knn_score'
    ? { field, vector: query_value, distance: own(DISTANCES, String(space_type)) }
    : undefined

function ofPainless(source: string, params: Json): Given | undefined {
  const whole = source.trim()
  const [, inverse, inner = whole] = BRACKETS.exec(whole) ?? []
  const [, name, parameter = '', , field] = MEASURE.exec(inner.trim()) ?? []
  const distance = own(FUNCTIONS, (inverse === undefined ? '' : '1/') + name)
  return { field, vector: own(params, parameter), distance }
}
