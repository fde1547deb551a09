/** The cluster's settings: flags of the ML plugin, and the URLs that connectors may call. */
import {
  type ClusterSettings,
  changeSettings,
  type FindResource,
  HISTORY,
  readSettings,
  TRUSTED,
} from '../../registry/resources'
import type { Call } from '../http/route'
import { illegalArgument, OpenSearchError } from './errors'
import { isObject, isOn, type Json, readObject } from './route'

export const MEMORY = 'plugins.ml_commons.memory_feature_enabled'
export const RAG = 'plugins.ml_commons.rag_pipeline_feature_enabled'

/** Default values. Scripts send the later ones; they have no effect here. */
const DEFAULTS: ClusterSettings = {
  [MEMORY]: 'true',
  [RAG]: 'true',
  [TRUSTED]: [],
  [HISTORY]: 'opensearch_memory',
  'plugins.ml_commons.only_run_on_ml_node': 'false',
  'plugins.ml_commons.allow_registering_model_via_url': 'false',
  'plugins.ml_commons.allow_registering_model_via_local_file': 'false',
  'plugins.ml_commons.model_access_control_enabled': 'false',
  'plugins.ml_commons.connector_access_control_enabled': 'false',
  'plugins.ml_commons.native_memory_threshold': '90',
  'plugins.ml_commons.jvm_heap_memory_threshold': '85',
}

const MOST_PATTERNS = 100
const LONGEST_PATTERN = 500

export async function settings({ env, query }: Call): Promise<Json> {
  const shown = (flat: ClusterSettings): Json => (isOn(query.flat_settings) ? flat : nested(flat))
  return {
    persistent: shown(await readSettings(env)),
    transient: {},
    ...(isOn(query.include_defaults) && { defaults: shown(DEFAULTS) }),
  }
}

export async function putSettings({ env, request }: Call): Promise<Json> {
  const body = await readObject(request)
  const changes: Record<string, string | string[] | null> = {}
  for (const [scope, given] of Object.entries(body)) {
    if (scope !== 'persistent' && scope !== 'transient') throw illegalArgument(`unknown field [${scope}]`)
    if (!isObject(given)) throw illegalArgument(`[${scope}] has to be an object`)
    for (const [name, value] of flatten(given)) {
      if (!Object.hasOwn(DEFAULTS, name)) throw illegalArgument(`${scope} setting [${name}], not recognized`)
      changes[name] = value === null ? null : settingOf(name, value)
    }
  }
  if (Object.keys(changes).length === 0) {
    throw new OpenSearchError(
      400,
      'action_request_validation_exception',
      'Validation Failed: 1: no settings to update;',
    )
  }
  await changeSettings(env, changes)
  const set = Object.fromEntries(
    Object.entries(changes).flatMap(([name, value]) => (value === null ? [] : [[name, value]])),
  )
  return { acknowledged: true, persistent: nested(set), transient: {} }
}

function settingOf(name: string, value: unknown): string | string[] {
  if (name === TRUSTED) {
    const list = Array.isArray(value) ? value : [value]
    if (list.length > MOST_PATTERNS || !list.every(isPattern)) {
      throw illegalArgument(
        `Failed to parse value for setting [${name}]: it takes a list of regular expressions`,
      )
    }
    return list
  }
  const text = String(value)
  if (name === HISTORY) {
    if (typeof value !== 'string' || value === '')
      throw illegalArgument(`[${name}] takes the name of a collection`)
  } else if (/^\d+$/.test(String(DEFAULTS[name]))) {
    if (!/^\d{1,3}$/.test(text) || Number(text) > 100)
      throw illegalArgument(`Failed to parse value [${text}] for setting [${name}] must be <= 100`)
  } else if (text !== 'true' && text !== 'false') {
    throw illegalArgument(
      `Failed to parse value [${text}] as only [true] or [false] are allowed. for setting [${name}]`,
    )
  }
  return text
}

function isPattern(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > LONGEST_PATTERN) return false
  try {
    new RegExp(value)
    return true
  } catch {
    return false
  }
}

/** Flattens nested settings to dotted names. */
function flatten(given: Json, path = ''): [string, unknown][] {
  return Object.entries(given).flatMap(([key, value]) =>
    isObject(value) ? flatten(value, `${path}${key}.`) : [[path + key, value] as [string, unknown]],
  )
}

function nested(flat: ClusterSettings): Json {
  const root: Json = {}
  for (const [name, value] of Object.entries(flat)) {
    const path = name.split('.')
    const last = path.pop()!
    let at = root
    for (const key of path) {
      at[key] ??= {}
      at = at[key] as Json
    }
    at[last] = value
  }
  return root
}

/** Whether a feature is on. */
export const isEnabled = async (env: Cloudflare.Env, name: string, find?: FindResource): Promise<boolean> =>
  ((await readSettings(env, find))[name] ?? DEFAULTS[name]) === 'true'
