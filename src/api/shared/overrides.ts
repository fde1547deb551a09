/**
 * Turns the overrides of a request into changes (contract chat-protocols 2). Pure.
 *
 * Each override is applied, ignored with a note if it makes no difference, or refused by name. Clients send all their switches
 * with every request, so `false`, null and empty values ask for nothing.
 */

import { ApiError } from '../../errors'
import { namesOf } from '../../lib/nearest'
import { once } from '../../lib/once'
import { OVERRIDES, type Override } from '../../registry/overrides'
import type { Changes } from './assistant'

interface OverridePlan {
  changes: Changes
  /** whether to suggest next questions, if the request says */
  suggests?: boolean
  /** names of known overrides without effect */
  ignored: string[]
  /** names of unknown overrides */
  unknown: string[]
}

/** The overrides that a request may use. */
interface OverrideRights {
  /** names that the assistant allows; with the admin key, all */
  allowed: readonly string[]
  /** true: refuse what would otherwise be ignored */
  strict: boolean
}

/** An override that is refused. */
export class OverrideError extends ApiError {
  constructor(
    readonly override: string,
    /** `invalid_override`, `unsupported_override` or `forbidden_override` */
    readonly type: string,
    why: string,
  ) {
    super(400, `context.overrides.${override} ${why}`)
  }
}

interface Rule {
  holds(value: unknown): boolean
  /** describes valid values */
  what: string
  /** absent: no effect */
  apply?(plan: OverridePlan, value: never): void
  /** why a value asks for nothing beside what else was asked, if it does */
  idleSince?(plan: OverridePlan, value: never): string | undefined
  /** whether `false` asks for something */
  takesFalse?: boolean
}

const LONGEST_TEXT = 4_000
const LONGEST_TEMPLATE = 20_000
const MOST_DOCUMENTS = 50
const MOST_TOKENS = 16_384

type Apply<Value> = (plan: OverridePlan, value: Value) => void

const isNumber = (from: number, to: number) => (value: unknown) =>
  typeof value === 'number' && value >= from && value <= to

/** Absent `apply`: no effect. */
const text = (apply?: Apply<string>, longest = LONGEST_TEXT): Rule => ({
  holds: (value) => typeof value === 'string' && value.length <= longest,
  what: apply ? `a text of at most ${longest} characters` : 'a text',
  ...(apply && { apply }),
})

const number = (from: number, to: number, apply: Apply<number>): Rule => ({
  holds: isNumber(from, to),
  what: to === Number.POSITIVE_INFINITY ? `a number from ${from}` : `a number from ${from} to ${to}`,
  apply,
})

const integer = (from: number, to: number, apply: Apply<number>): Rule => ({
  holds: (value) => Number.isSafeInteger(value) && isNumber(from, to)(value),
  what: to === Number.MAX_SAFE_INTEGER ? 'an integer' : `an integer from ${from} to ${to}`,
  apply,
})

const oneOf = (values: string[], apply: Apply<string>): Rule => ({
  holds: (value) => values.includes(value as string),
  what: `one of ${values.join(', ')}`,
  apply,
})

/** A switch that changes nothing here. */
const idle: Rule = { holds: (value) => typeof value === 'boolean', what: 'true or false' }

/** A switch that is on by default. */
const whenFalse = (turnOff: (changes: Changes) => void): Rule => ({
  ...idle,
  takesFalse: true,
  apply({ changes }, value: boolean) {
    if (!value) turnOff(changes)
  },
})

const set =
  (change: keyof Changes): Apply<number | string> =>
  ({ changes }, value) =>
    void Object.assign(changes, { [change]: value })

const setModel =
  (property: string): Apply<number | string> =>
  ({ changes }, value) => {
    changes.model = { ...changes.model, [property]: value }
  }

/** In some versions of the protocol, these values select what to search, instead of naming fields. */
const TEXT_VECTORS = ['textEmbeddingOnly']
const IMAGE_VECTORS = ['imageEmbedding', 'imageEmbeddingOnly']
const TEXT_AND_IMAGES = 'textAndImageEmbeddings'

/** Of texts and images, texts are searched. Images alone are refused: something else would be searched instead. */
function setVectorField({ changes, ignored }: OverridePlan, value: string | string[]): void {
  const names = [value].flat().filter((name) => name !== '')
  const others = names.filter((name) => !IMAGE_VECTORS.includes(name))
  if (names.length > 0 && others.length === 0) {
    throw unsupported('vector_fields', 'there are no images to search')
  }
  const fields = others.filter((name) => ![...TEXT_VECTORS, TEXT_AND_IMAGES].includes(name))
  if (fields.length > 1) throw unsupported('vector_fields', 'a search takes one embedding field')
  if (others.length < names.length || others.includes(TEXT_AND_IMAGES)) ignored.push('vector_fields')
  if (fields[0] !== undefined) changes.vectorField = fields[0]
}

function addPrompt({ changes }: OverridePlan, value: string): void {
  const { prompt } = changes
  changes.prompt = { ...prompt, append: [...(prompt?.append ?? []), value] }
}

/** Rules of overrides that an assistant can allow, and of those that only ask for the usual behaviour. */
const rulesOf = once((): Record<string, Rule> & Record<Exclude<Override, 'tools'>, Rule> => ({
  temperature: number(0, 2, setModel('temperature')),
  top_p: number(0, 1, setModel('top_p')),
  frequency_penalty: number(-2, 2, setModel('frequency_penalty')),
  presence_penalty: number(-2, 2, setModel('presence_penalty')),
  seed: integer(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, setModel('seed')),
  max_response_tokens: integer(1, MOST_TOKENS, setModel('max_tokens')),
  reasoning_effort: oneOf(['none', 'minimal', 'low', 'medium', 'high'], setModel('reasoning_effort')),
  top: integer(1, MOST_DOCUMENTS, set('top')),
  retrieval_mode: oneOf(['text', 'vectors', 'hybrid'], set('mode')),
  search_text_embeddings: whenFalse((changes) => {
    if (changes.mode === 'vectors') {
      throw unsupported('search_text_embeddings', 'cannot be false where `retrieval_mode` is vectors')
    }
    changes.mode = 'text'
  }),
  vector_fields: {
    holds: (value) => [value].flat().every(text().holds),
    what: 'the name of an embedding field',
    apply: setVectorField,
    idleSince: ({ changes }) => (changes.mode === 'text' ? 'the search is by words alone' : undefined),
  },
  include_category: text(set('includeCategory')),
  exclude_category: text(set('excludeCategory')),
  filter_by: text(set('filterBy')),
  minimum_search_score: number(0, Number.POSITIVE_INFINITY, set('minimumScore')),
  suggest_followup_questions: {
    ...idle,
    takesFalse: true,
    apply(plan, value: boolean) {
      plan.suggests = value
    },
  },
  language: {
    holds: (value) => typeof value === 'string' && /^[a-z]{2,8}(-[a-z0-9]{1,8}){0,4}$/i.test(value),
    what: 'a language tag such as `de` or `pt-BR`',
    apply: (plan, tag: string) =>
      addPrompt(plan, `Where the language of the question is unclear, answer in the language \`${tag}\`.`),
  },
  prompt_template: text((plan, template) => {
    if (template.startsWith('>>>')) addPrompt(plan, template.slice(3).trim())
    else plan.changes.prompt = { ...plan.changes.prompt, replace: template }
  }, LONGEST_TEMPLATE),

  semantic_ranker: { ...idle, apply: set('rerank') },
  // Front ends send it even with the ranker off. Then it asks for nothing.
  minimum_reranker_score: {
    ...number(0, Number.POSITIVE_INFINITY, ({ changes }, score) => {
      if (score > 0) changes.minimumRerankScore = score
    }),
    idleSince: ({ changes }, score) => (score > 0 && !changes.rerank ? 'semantic_ranker is off' : undefined),
  },

  // Never have an effect.
  semantic_captions: idle,
  query_rewriting: idle,
  approach: text(),
  retrieval_reasoning_effort: text(),
  results_merge_strategy: text(),
  // Says what `use_gpt4v` is to read. Front ends send it with that off, and with that on they are refused.
  gpt4v_input: text(),
  send_text_sources: whenFalse((changes) => {
    changes.top = 0
  }),
}))

/** Overrides that Parley cannot honour and must not silently ignore. */
const UNSUPPORTED: Record<string, string> = {
  use_gpt4v: 'this assistant has no image model',
  use_multimodal_answering: 'this assistant has no image model',
  send_image_sources: 'there are no images to send',
  search_image_embeddings: 'there are no images to search',
  use_oid_security_filter: 'this assistant has no sign-in; what a key may see is in the key',
  use_groups_security_filter: 'this assistant has no sign-in; what a key may see is in the key',
  use_agentic_knowledgebase: 'this is a service of Azure',
  use_agentic_retrieval: 'this is a service of Azure',
  use_web_source: 'this assistant searches its own collections alone',
  use_sharepoint_source: 'this assistant searches its own collections alone',
  prompt_template_prefix: 'use prompt_template',
  prompt_template_suffix: 'use prompt_template',
}

/** Ignoring these would answer a different question. */
const NEVER_PASSED_OVER = namesOf(`
  filter_by include_category exclude_category minimum_search_score prompt_template
`)

const unsupported = (name: string, why: string): OverrideError =>
  new OverrideError(name, 'unsupported_override', `is not supported: ${why}.`)

/** @param overrides as the request has them @throws OverrideError for a value that is invalid, unsupported or not allowed */
export function planOverrides(
  overrides: Readonly<Record<string, unknown>>,
  { allowed, strict }: OverrideRights,
): OverridePlan {
  const plan: OverridePlan = { changes: {}, ignored: [], unknown: [] }
  if (overrides.send_text_sources === false && overrides.search_text_embeddings === false) {
    throw unsupported('send_text_sources', 'one of the text inputs has to stay')
  }
  // In the order of the rules, because some depend on the result of others.
  for (const name of new Set([...Object.keys(rulesOf()), ...Object.keys(overrides)])) {
    if (Object.hasOwn(overrides, name)) applyOne(plan, name, overrides[name], { allowed, strict })
  }
  return plan
}

function applyOne(plan: OverridePlan, name: string, value: unknown, rights: OverrideRights): void {
  const rules = rulesOf()
  const rule = Object.hasOwn(rules, name) ? rules[name] : undefined
  if (isNothing(value) && !(value === false && rule?.takesFalse)) return
  const why = Object.hasOwn(UNSUPPORTED, name) ? UNSUPPORTED[name] : undefined
  if (why !== undefined) throw unsupported(name, why)
  if (!rule) {
    if (rights.strict) throw new OverrideError(name, 'unsupported_override', 'is not known.')
    plan.unknown.push(name)
    return
  }
  if (!rule.holds(value)) throw new OverrideError(name, 'invalid_override', `is not ${rule.what}.`)
  const isAllowed = !(OVERRIDES as readonly string[]).includes(name) || rights.allowed.includes(name)
  const idle = rule.idleSince?.(plan, value as never)
  if (idle !== undefined && rights.strict) throw unsupported(name, idle)
  if (isAllowed && rule.apply && idle === undefined) {
    rule.apply(plan, value as never)
  } else if (isAllowed || !(rights.strict || NEVER_PASSED_OVER.includes(name))) {
    // An override that switches off what does not happen anyway needs no note.
    if (value !== false) plan.ignored.push(name)
  } else {
    throw new OverrideError(name, 'forbidden_override', 'is not allowed by this assistant.')
  }
}

const isNothing = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === false ||
  value === '' ||
  (Array.isArray(value) && value.length === 0)

/** The overrides that a key may use. @param isAdmin whether it is the admin key */
export const overrideRights = (
  { overrides, strict }: { overrides: readonly string[]; strict: boolean },
  isAdmin: boolean,
): OverrideRights => ({ allowed: isAdmin ? OVERRIDES : overrides, strict })
