/**
 * Checks that an answer has the form that its request asks for.
 *
 * A schema comes from a caller and runs in an isolate that others share. So only keywords whose work is bounded are checked:
 * `pattern`, `format` and `uniqueItems` are left to the provider. A schema that could branch without end is refused
 * before a model is asked.
 */
import { ApiError, coded } from '../errors'
import { parseShallow, tryJson } from '../lib/json'
import type { AnswerForm } from '../models/language-model'
import { isObject } from '../search/schema/values'
import type { Generated } from './trace'

type Schema = Record<string, unknown>

/** Characters of a schema's JSON. */
const LONGEST_SCHEMA = 64_000
/** Levels of an answer that are counted. Answers do not nest deeper. */
const DEEPEST = 32
/** Schemas that may be applied on a path through an answer of that depth. */
const MOST_WORK = 20_000

const PLAIN = [
  'type',
  'enum',
  'const',
  'required',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
  '$ref',
]
/** Keywords that describe a schema and restrict no value. */
const ANNOTATIONS = [
  'title',
  'description',
  'default',
  'examples',
  'deprecated',
  'readOnly',
  'writeOnly',
  '$schema',
  '$id',
  'id',
  '$anchor',
  '$comment',
]
/** Keywords that hold schemas: a list, one, or several by name. */
const ALTERNATIVES = ['anyOf', 'oneOf', 'allOf', 'prefixItems']
const SINGLE = ['not', 'items', 'additionalProperties']
const NAMED = ['properties', '$defs', 'definitions']

const isChecked = (word: string): boolean =>
  [PLAIN, ALTERNATIVES, SINGLE, NAMED].some((some) => some.includes(word))

/** Whether a keyword anywhere in a schema is left to the provider. */
function isPartly(schema: unknown): boolean {
  if (!isObject(schema)) return false
  return Object.entries(schema).some(([word, value]) => {
    if (SINGLE.includes(word)) return isPartly(value)
    if (ALTERNATIVES.includes(word) && Array.isArray(value)) return value.some(isPartly)
    if (NAMED.includes(word) && isObject(value)) return Object.values(value).some(isPartly)
    return !isChecked(word) && !ANNOTATIONS.includes(word)
  })
}

/**
 * The schema without the keywords that are not checked. It must accept every value that the whole schema accepts. Each
 * missing keyword makes it accept more. That breaks `not`, which would then refuse more, and `oneOf`, where several
 * alternatives could fit.
 */
function checkedPart(schema: unknown): unknown {
  const partly = isPartly(schema)
  const part = (given: unknown): unknown => {
    if (!isObject(given)) return given !== false
    const kept: Schema = {}
    for (const [word, value] of Object.entries(given)) {
      if (PLAIN.includes(word)) kept[word] = value
      else if (SINGLE.includes(word)) {
        const isUnsure =
          word === 'not' ? partly : word === 'additionalProperties' && 'patternProperties' in given
        if (!isUnsure) kept[word] = part(value)
      } else if (ALTERNATIVES.includes(word) && Array.isArray(value)) {
        const alternatives = value.map(part)
        if (word === 'oneOf' && partly) kept.allOf = [...listIn(kept.allOf), { anyOf: alternatives }]
        else kept[word] = word === 'allOf' ? [...listIn(kept.allOf), ...alternatives] : alternatives
      } else if (NAMED.includes(word) && isObject(value)) {
        kept[word] = Object.fromEntries(Object.entries(value).map(([name, each]) => [name, part(each)]))
      }
    }
    return kept
  }
  return part(schema)
}

const listIn = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

/** @throws ApiError 400 for a schema that is too long, refers to what it does not hold, or could branch without end */
export function requireSchema(schema: Schema): void {
  if (JSON.stringify(schema).length > LONGEST_SCHEMA) {
    throw new ApiError(400, `The schema is longer than ${LONGEST_SCHEMA} characters.`)
  }
  const root = checkedPart(schema) as Schema
  if (workOf(root, root, DEEPEST, new Map()) > MOST_WORK) {
    throw new ApiError(
      400,
      'The schema has too many alternatives within alternatives, or refers to itself without a property between.',
    )
  }
}

/** How many schemas may be applied to a value and to those in it, to a depth. @param known by schema and depth */
function workOf(root: Schema, schema: unknown, depth: number, known: Map<unknown, number[]>): number {
  if (!isObject(schema) || depth < 0) return 0
  const works = known.get(schema) ?? []
  known.set(schema, works)
  if (works[depth] !== undefined) return works[depth]
  // Reaching this entry again before it is filled means that the schemas refer to each other in a circle.
  works[depth] = Number.POSITIVE_INFINITY
  const { $ref, not, items, additionalProperties, properties } = schema
  const here = [not, ...listIn(schema.anyOf), ...listIn(schema.oneOf), ...listIn(schema.allOf)]
  if ($ref !== undefined) here.push(referred(root, $ref))
  const below = [
    items,
    additionalProperties,
    ...listIn(schema.prefixItems),
    ...Object.values(properties ?? {}),
  ]
  const sum = (of: unknown[], at: number) =>
    of.reduce<number>((total, one) => total + workOf(root, one, at, known), 0)
  works[depth] = 1 + sum(here, depth) + sum(below, depth - 1)
  return works[depth]
}

/** The schema that a `$ref` names. @throws ApiError 400 if there is none at that place */
function referred(root: Schema, ref: unknown): unknown {
  const path = String(ref)
  const found = /^#(\/.*)?$/.test(path) ? schemaAt(root, stepsOf(path)) : undefined
  if (found === undefined) throw new ApiError(400, `The schema has no \`${path}\`, which its \`$ref\` names.`)
  return found
}

/** The steps of a JSON pointer; undefined if its percent signs encode nothing. */
function stepsOf(path: string): string[] | undefined {
  try {
    const steps = path.split('/').slice(1).map(decodeURIComponent)
    return steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
  } catch {
    return undefined
  }
}

/** The value of `const` and the like is data, even if it looks like a schema. */
function schemaAt(root: Schema, steps: string[] | undefined): unknown {
  let at: unknown = steps && root
  let isNames = false
  for (const step of steps ?? []) {
    if (!isObject(at) || !Object.hasOwn(at, step) || (!isNames && PLAIN.includes(step))) return undefined
    at = at[step]
    isNames = !isNames && NAMED.includes(step)
  }
  return isNames ? undefined : at
}

/** @throws ApiError 400 for an answer that is not of the form. One that was cut off is not checked */
export async function requireForm(
  form: AnswerForm,
  { text, finish }: Pick<Generated, 'text' | 'finish'>,
): Promise<void> {
  if (finish !== 'stop') return
  const value = tryJson(text, parseShallow)
  if (form.type === 'json') {
    if (!isObject(value)) throw unfit('it is not a JSON object')
    return
  }
  if (value === undefined) throw unfit('it is not JSON')
  // Loaded at first use, so that it costs no start-up time.
  const { Validator } = await import('@cfworker/json-schema')
  const { valid, errors } = new Validator(checkedPart(form.schema) as Schema, '2020-12').validate(value)
  const fault = errors.at(-1)
  if (!valid) throw unfit(fault ? `at ${fault.instanceLocation}: ${fault.error}` : 'it is another value')
}

const unfit = (why: string): ApiError =>
  coded(
    'model_failed',
    400,
    `The model's answer does not fit the form that was asked for: ${why}. Ask again.`,
  )
