/**
 * Models that turn a request in plain language into a search: `nl_search_models`. They are conversation models without
 * a conversation, with the same providers, and their secrets are sealed and masked alike. Rows of D1's `resources`.
 */
import * as v from 'valibot'
import { RowCache } from '../db/client'
import {
  deleteResource,
  findResource,
  insertResource,
  listResources,
  type ResourceRow,
  replaceResource,
} from '../db/resources'
import { badRequest } from '../errors'
import { once } from '../lib/once'
import type { ConversationModelConfig } from '../models/language-model'
import { namespaceOf, providerOf } from '../models/providers'
import { checkParameters, withoutNulls } from '../models/sampling'
import { partSecrets, requireSecrets } from '../models/secrets'
import { isObject } from '../search/schema/values'
import { applyChange, mergeSecrets, missing, openSecrets, sealSecrets, shownSecrets, taken } from './models'

const KIND = 'nl_search_model'

/** How long another isolate may use a model that was changed or deleted, in milliseconds. */
const CACHE_MS = 5_000

/** What each provider needs. The other providers have no language model that writes text. */
const NEEDED: Record<string, string[]> = {
  openai: ['api_key'],
  cloudflare: ['api_key', 'account_id'],
  vllm: [],
  google: ['api_key'],
  azure: ['api_key', 'url'],
  anthropic: ['api_key'],
  bedrock: [],
}

const Stored = once(() =>
  v.object({
    /** without its secrets */
    config: v.record(v.string(), v.unknown()),
    masked: v.nullable(v.string()),
  }),
)

type Config = Record<string, unknown> & { id: string; model_name: string }
type Shown = Record<string, unknown>

const models = new RowCache<ResourceRow>('a model for natural language', CACHE_MS)

const readRow = (env: Cloudflare.Env, id: string) => findResource(env.DB, KIND, id)
/** @throws ApiError 404 */
const requireRow = async (env: Cloudflare.Env, id: string): Promise<ResourceRow> =>
  (await readRow(env, id)) ?? missing()
const storedIn = ({ body }: Pick<ResourceRow, 'body'>) => v.parse(Stored(), JSON.parse(body))
const sealedIn = (row: Pick<ResourceRow, 'body' | 'sealed'>) => ({
  sealedSecrets: row.sealed,
  maskedSecrets: storedIn(row).masked,
})
const shown = (row: Pick<ResourceRow, 'body' | 'sealed'>): Shown => ({
  ...storedIn(row).config,
  ...shownSecrets(sealedIn(row)),
})
const idIn = ({ id }: Record<string, unknown>): string | undefined =>
  typeof id === 'string' && id !== '' ? id : undefined

/** @throws ApiError 400 for a failed check, 408 when the provider does not answer, 409 when the id is taken */
export async function createNlModel(env: Cloudflare.Env, body: unknown): Promise<Shown> {
  if (!isObject(body)) throw badRequest('Bad JSON.')
  const id = idIn(body) ?? crypto.randomUUID()
  if (await readRow(env, id)) throw taken()
  const row = await toRow(env, await check(env, { ...body, id }))
  if (!(await insertResource(env.DB, row))) throw taken()
  return getNlModel(env, id)
}

/**
 * Merges properties into a model and checks the result. Another `id` renames the model. Concurrent changes are all
 * applied.
 * @throws ApiError as create, and 404
 */
export async function updateNlModel(env: Cloudflare.Env, id: string, body: unknown): Promise<Shown> {
  if (!isObject(body)) throw badRequest('Bad JSON.')
  const stored = await applyChange(async () => {
    const row = await requireRow(env, id)
    const updated = await mergedRow(env, row, body)
    const outcome = await replaceResource(env.DB, row, updated)
    models.clear()
    return { outcome, updated }
  })
  return shown(stored)
}

/** A model with properties merged into it, checked. @throws ApiError as create */
async function mergedRow(env: Cloudflare.Env, row: ResourceRow, body: Record<string, unknown>) {
  const renamed = idIn(body) ?? row.id
  if (renamed !== row.id && (await readRow(env, renamed))) throw taken()
  const { config } = storedIn(row)
  const { properties, requireSent } = await mergeSecrets(sealedIn(row), body, env, (secrets) =>
    asModel({ ...config, ...secrets } as Config),
  )
  return toRow(env, await check(env, { ...config, ...properties, id: renamed }, requireSent))
}

export const listNlModels = async (env: Cloudflare.Env): Promise<Shown[]> =>
  (await listResources(env.DB, KIND)).map(shown)

/** @throws ApiError 404 */
export const getNlModel = async (env: Cloudflare.Env, id: string): Promise<Shown> =>
  shown(await requireRow(env, id))

/** @returns the deleted model @throws ApiError 404 */
export async function deleteNlModel(env: Cloudflare.Env, id: string): Promise<Shown> {
  const model = await getNlModel(env, id)
  await deleteResource(env.DB, KIND, id)
  models.clear()
  return model
}

/**
 * Reads a model for a call, with its secrets in clear.
 * @param id undefined: the oldest
 * @returns undefined if there is none @throws ApiError 400 when its secrets cannot be opened
 */
export async function findNlModel(
  env: Cloudflare.Env,
  id: string | undefined,
): Promise<ConversationModelConfig | undefined> {
  const row = await models.find(id ?? '', async () =>
    id === undefined ? (await listResources(env.DB, KIND))[0] : readRow(env, id),
  )
  return row && asModel({ ...storedIn(row).config, ...(await openSecrets(sealedIn(row), env)) } as Config)
}

async function toRow(env: Cloudflare.Env, config: Config) {
  const { secrets, rest } = partSecrets(config)
  const { sealedSecrets, maskedSecrets } = await sealSecrets(secrets, env)
  const body = JSON.stringify({ config: rest, masked: maskedSecrets })
  return { kind: KIND, id: config.id, body, sealed: sealedSecrets }
}

/**
 * @param requireMore runs further checks, before anything is sent to the provider
 * @throws ApiError
 */
async function check(
  env: Cloudflare.Env,
  given: Record<string, unknown>,
  requireMore: (model: ConversationModelConfig) => void = () => {},
): Promise<Config> {
  const config = withoutNulls(given)
  const { model_name: name, system_prompt: prompt, max_bytes: most } = config
  if (typeof name !== 'string') {
    throw badRequest('Property `model_name` is not provided or not a string.')
  }
  if (prompt !== undefined && typeof prompt !== 'string') {
    throw badRequest('Property `system_prompt` is not a string.')
  }
  if (!Number.isSafeInteger(most) || (most as number) <= 0) {
    throw badRequest('Property `max_bytes` is not provided or not a positive integer.')
  }
  const namespace = namespaceOf(name)
  const needed = Object.hasOwn(NEEDED, namespace) ? NEEDED[namespace]! : undefined
  if (needed === undefined) throw badRequest(`Model namespace \`${namespace}\` is not supported.`)
  const address = namespace === 'vllm' && config.vllm_url === undefined ? ['api_url'] : []
  for (const property of [...needed, ...address]) {
    if (typeof config[property] !== 'string' || config[property] === '') {
      throw badRequest(`Property \`${property}\` is missing or is not a non-empty string.`)
    }
  }
  if (config.api_url !== undefined && !URL.canParse(String(config.api_url))) {
    throw badRequest('Property `api_url` is not a URL.')
  }
  const model = asModel(config as Config)
  const provider = providerOf(model)
  provider.validate(model, env)
  requireSecrets(config)
  checkParameters(model)
  requireMore(model)
  await provider.probe(model, env)
  return config as Config
}

/** Models that take no temperature. */
const REASONING = /^openai\/(o\d|gpt-5)/

/** The model as its provider's adapter takes it. Its usage is counted under a separate name. */
function asModel({ api_url: address, ...config }: Config): ConversationModelConfig {
  const place =
    typeof address !== 'string' || !URL.canParse(address) ? {} : placeOf(config.model_name, new URL(address))
  return {
    ...(!REASONING.test(config.model_name) && { temperature: 0 }),
    ...config,
    ...place,
    id: `nl_search_models/${config.id}`,
    max_bytes: Number(config.max_bytes),
    history_collection: '',
    ttl: 0,
  }
}

/** Typesense's `api_url` is the whole address. Providers here take the server and the path separately. */
const placeOf = (name: string, { origin, pathname, search }: URL): Record<string, string> =>
  namespaceOf(name) === 'vllm'
    ? { vllm_url: origin + pathname.replace(/\/(v1\/chat\/completions|generate)\/?$/, '') }
    : { openai_url: origin, openai_path: pathname + search }
