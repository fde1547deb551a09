/** Sampling settings of a model: checked, and translated for each provider. */
import { badRequest } from '../errors'
import { checkHeaders, LONGEST_SILENCE } from './call'

/** What a model sets, independent of providers. What it does not set is not sent. */
interface Sampling {
  temperature?: number
  top_p?: number
  /** the most tokens of an answer */
  max_tokens?: number
  /** how long a reasoning model thinks: `low`, `medium`, `high`, or another value that the provider knows */
  reasoning_effort?: string
  /** texts at which an answer ends */
  stop?: string[]
  /** the same number asks for the same answer again, as far as the provider can */
  seed?: number
  frequency_penalty?: number
  presence_penalty?: number
}

/** @param config of a model that was checked */
export function samplingOf(config: Record<string, unknown>): Sampling {
  const { max_completion_tokens: most, ...set } = Object.fromEntries(
    SAMPLING.map((name) => [name, config[name]]),
  )
  const stop = typeof set.stop === 'string' ? [set.stop] : set.stop
  return defined({ ...set, max_tokens: set.max_tokens ?? most, stop }) as Sampling
}

const MOST_STOPS = 16
const LONGEST_STOP = 500

const isNumber = (value: unknown, from: number, to: number): boolean =>
  typeof value === 'number' && value >= from && value <= to

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) > 0

const isStop = (value: unknown): boolean =>
  typeof value === 'string' && value !== '' && value.length <= LONGEST_STOP

const CHECKS: [property: string, holds: (value: unknown) => boolean, what: string][] = [
  ['temperature', (value) => isNumber(value, 0, 2), 'a number from 0 to 2'],
  ['top_p', (value) => isNumber(value, 0, 1), 'a number from 0 to 1'],
  ['seed', (value) => Number.isSafeInteger(value), 'an integer'],
  ['frequency_penalty', (value) => isNumber(value, -2, 2), 'a number from -2 to 2'],
  ['presence_penalty', (value) => isNumber(value, -2, 2), 'a number from -2 to 2'],
  ['max_tokens', isCount, 'a positive integer'],
  ['max_completion_tokens', isCount, 'a positive integer'],
  [
    'reasoning_effort',
    (value) => typeof value === 'string' && /^[a-z]{1,20}$/.test(value),
    'a word such as `low`, `medium` or `high`',
  ],
  [
    'stop',
    (value) =>
      isStop(value) ||
      (Array.isArray(value) && value.length > 0 && value.length <= MOST_STOPS && value.every(isStop)),
    `a text, or a list of up to ${MOST_STOPS} texts`,
  ],
]

const SAMPLING: readonly string[] = CHECKS.map(([property]) => property)

/** A model's config without these settings, since they may not suit another model. */
export const withoutSampling = <T extends Record<string, unknown>>(config: T): T =>
  Object.fromEntries(Object.entries(config).filter(([name]) => !SAMPLING.includes(name))) as T

/** @throws ApiError 400 that tells what a property has to be */
function checkSampling(config: Record<string, unknown>): void {
  for (const [property, holds, what] of CHECKS) {
    if (config[property] !== undefined && !holds(config[property])) {
      throw badRequest(`Property \`${property}\` is not ${what}.`)
    }
  }
}

/** OpenAI's reasoning models refuse `max_tokens`. They count their thoughts as tokens too. */
const REASONING = /^(?:o\d|gpt-(?:[5-9]|\d\d)|codex)/

/** Settings that make answers more or less random. */
const RANDOMNESS = ['temperature', 'top_p', 'frequency_penalty', 'presence_penalty']

/** Namespaces whose highest temperature is 1. */
const UP_TO_ONE = ['anthropic', 'bedrock']

/** Settings that a provider's API lacks, and that would otherwise be ignored silently. */
const WITHOUT_WORDS: Record<string, readonly string[]> = {
  anthropic: ['seed', 'frequency_penalty', 'presence_penalty'],
  bedrock: ['seed', 'frequency_penalty', 'presence_penalty', 'reasoning_effort'],
  local: SAMPLING,
}

/** Claude models, which since 4.1 refuse `temperature` together with `top_p`. An ARN may hide the name. */
const CLAUDE = /^(?:anthropic\/|bedrock\/.*claude)/

/**
 * The settings of a single request that a model accepts. The caller may know nothing of the model: reasoning models
 * refuse settings of randomness, Claude two of them at once, some models a temperature above 1, and not every API has
 * every setting. A model's own config is its owner's responsibility.
 * @param modelName with its namespace
 */
export function acceptedBy(modelName: string, settings: Record<string, unknown>): Record<string, unknown> {
  const [namespace = '', ...name] = modelName.split('/')
  const isReasoning = REASONING.test(name.join('/'))
  const hasRival = CLAUDE.test(modelName) && settings.temperature !== undefined
  const refused = [
    ...(isReasoning ? RANDOMNESS : []),
    ...(hasRival ? ['top_p'] : []),
    ...(WITHOUT_WORDS[namespace] ?? []),
  ]
  const taken = Object.fromEntries(Object.entries(settings).filter(([setting]) => !refused.includes(setting)))
  const { temperature } = taken
  return UP_TO_ONE.includes(namespace) && typeof temperature === 'number'
    ? { ...taken, temperature: Math.min(1, temperature) }
    : taken
}

/** A model's config, overridden by those settings of a single request that the model accepts. */
export function withSettings<T extends { model_name: string }>(
  config: T,
  settings: Record<string, unknown>,
): T {
  const taken = acceptedBy(config.model_name, settings)
  const merged: T & Record<string, unknown> = { ...config, ...taken }
  if (CLAUDE.test(config.model_name)) {
    if (taken.temperature !== undefined) delete merged.top_p
    else if (taken.top_p !== undefined) delete merged.temperature
  }
  return merged
}

/**
 * Settings for chat completions.
 * @param model its name without the namespace, or what stands for one
 * @param ofOpenAi the server is OpenAI's own, which accepts the new name of `max_tokens` for all models. Most others
 *   know only the old one
 */
export function chatSampling(
  config: Record<string, unknown>,
  model: string,
  ofOpenAi = false,
): Record<string, unknown> {
  const { max_tokens: most, ...rest } = samplingOf(config)
  const isNew = ofOpenAi || REASONING.test(model) || config.max_completion_tokens !== undefined
  return { ...rest, ...(most !== undefined && { [isNew ? 'max_completion_tokens' : 'max_tokens']: most }) }
}

/** Thinking budgets, in tokens, for Gemini models that have budgets instead of effort levels. */
const THOUGHTS: Record<string, number> = { none: 0, minimal: 1_024, low: 1_024, medium: 8_192, high: 24_576 }

/** Settings for Gemini's `generationConfig`. @param model its name without the namespace */
export function geminiSampling(config: Record<string, unknown>, model: string): Record<string, unknown> {
  const { reasoning_effort: effort, ...rest } = samplingOf(config)
  const budget = THOUGHTS[effort ?? '']
  const byBudget = /^gemini-2/.test(model)
  const thinking = byBudget ? { thinkingBudget: budget } : { thinkingLevel: effort }
  return defined({
    temperature: rest.temperature,
    topP: rest.top_p,
    maxOutputTokens: rest.max_tokens,
    stopSequences: rest.stop,
    seed: rest.seed,
    frequencyPenalty: rest.frequency_penalty,
    presencePenalty: rest.presence_penalty,
    thinkingConfig: (byBudget ? budget : effort) === undefined ? undefined : thinking,
  })
}

/** An object without those of its properties that are undefined. */
export const defined = (values: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))

// =============================================================================
// Properties of a model that are the same for every provider.

/** Where a provider is called, if not at its own address. */
const ADDRESSES = [
  'openai_url',
  'openai_path',
  'url',
  'google_url',
  'anthropic_url',
  'bedrock_url',
  'cloudflare_url',
  'vllm_url',
]

const PARAMETERS: readonly string[] = [
  ...ADDRESSES,
  ...SAMPLING,
  'timeout',
  'headers',
  'fallbacks',
  'rewrite_model',
  'tokens_per_day',
  'turns_per_day',
  'starts_thinking',
]

/** A model's config without properties that are `null`. Null removes a property, which a merge cannot. */
export const withoutNulls = <T extends Record<string, unknown>>(config: T): T =>
  Object.fromEntries(
    Object.entries(config).filter(([name, value]) => value !== null || !PARAMETERS.includes(name)),
  ) as T

/** @throws ApiError 400 that tells what a property has to be */
export function checkParameters(config: Record<string, unknown>): void {
  checkSampling(config)
  if (config.retrieval !== undefined) {
    throw badRequest('Property `retrieval` belongs to an assistant, not to a conversation model.')
  }
  const { timeout } = config
  if (timeout !== undefined && !(typeof timeout === 'number' && timeout > 0 && timeout <= LONGEST_SILENCE)) {
    throw badRequest(
      `Property \`timeout\` is not a number of seconds, more than 0 and ${LONGEST_SILENCE} at most.`,
    )
  }
  const { starts_thinking } = config
  if (starts_thinking !== undefined && typeof starts_thinking !== 'boolean') {
    throw badRequest('Property `starts_thinking` is not true or false.')
  }
  checkHeaders(config.headers)
}

// =============================================================================
// Checks a model's properties, with each provider's own messages.

/** @throws ApiError 400 `missing` when the property is absent, `wrong` when it is not a string */
export function requireString(
  config: Record<string, unknown>,
  property: string,
  missing: string,
  wrong: string,
): void {
  if (config[property] === undefined) throw badRequest(missing)
  if (typeof config[property] !== 'string') throw badRequest(wrong)
}

/** @throws ApiError 400 `wrong` when the property is present and not a string */
export function allowString(config: Record<string, unknown>, property: string, wrong: string): void {
  if (config[property] !== undefined && typeof config[property] !== 'string') throw badRequest(wrong)
}

/** A model's name without its namespace: all after the first slash. */
export const modelId = (name: string): string => name.slice(name.indexOf('/') + 1)

export const withoutTrailingSlash = (url: string): string => (url.endsWith('/') ? url.slice(0, -1) : url)

/** Where a provider is called: what a property of the model says, if it is a text. */
export const addressIn = (config: Record<string, unknown>, property: string, usual: string): string => {
  const address = config[property]
  return typeof address === 'string' ? withoutTrailingSlash(address) : usual
}

export const withLeadingSlash = (path: string): string => (path.startsWith('/') ? path : `/${path}`)
