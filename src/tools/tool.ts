/**
 * Tools: what an assistant may look up or do besides its search. An HTTP action, an MCP server's tools, functions that the
 * visitor's page runs. A tool is stored once, with the secrets of its headers sealed, and assistants list it by its name.
 */
import * as v from 'valibot'
import { deleteResource, findResource, listResources, putResource, type ResourceRow } from '../db/resources'
import { open, seal } from '../db/sealing'
import { badRequest, coded } from '../errors'
import { maskSecret } from '../lib/mask'
import { once } from '../lib/once'
import { readStored } from '../lib/stored-json'
import type { ToolSpec } from '../models/language-model'

/** When a visitor is asked for leave: before each call, until they gave it once in a conversation, or never. */
export type Leave = 'each' | 'once' | 'never'

/** A tool as a turn knows it. It holds no secret, and no address. */
export interface Tool extends ToolSpec {
  /** what it does, for the visitor who is asked for leave */
  title: string
  leave: Leave
  /**
   * where it runs: in the turn itself (`search`, `document`), on the server (by `call.ts`), or on the visitor's page
   */
  runs: 'search' | 'document' | 'server' | 'page'
  /** it changes nothing, so that it may run twice */
  readOnly?: true
  /** of `search`: the collections that it searches; absent: all of the turn */
  collections?: string[]
  /** of `server`: the stored tool, and the name by which its MCP server knows it */
  source?: { tool: string; name?: string }
}

/** The tools that every assistant can list without storing them: its own search, and one of its documents. */
export const BUILT_IN = ['search', 'document'] as const
export type BuiltIn = (typeof BUILT_IN)[number]

export const SEARCH_TOOL: Tool = {
  name: 'search',
  title: 'Search the documents',
  description: 'Searches the documents again, for something that the ones at hand do not say.',
  parameters: {
    type: 'object',
    properties: { query: { type: 'string', description: 'A short question that is understood alone' } },
    required: ['query'],
  },
  leave: 'never',
  runs: 'search',
  readOnly: true,
}

const builtIn: Record<BuiltIn, Tool> = {
  search: SEARCH_TOOL,
  document: {
    name: 'document',
    title: 'Read a document',
    description: 'Reads a document whole, by the `id` that it has in the data.',
    parameters: {
      type: 'object',
      properties: { id: { type: 'string', description: 'The id of the document' } },
      required: ['id'],
    },
    leave: 'never',
    runs: 'document',
    readOnly: true,
  },
}

/** A tool of an MCP server, as the server described it when the tool was stored. */
const Listed = once(() =>
  v.object({
    name: v.string(),
    title: v.exactOptional(v.string()),
    description: v.string(),
    parameters: v.record(v.string(), v.unknown()),
    readOnly: v.exactOptional(v.literal(true)),
  }),
)
export type ListedTool = v.InferOutput<ReturnType<typeof Listed>>

const Schema = once(() => v.record(v.string(), v.unknown()))

/** How a tool is stored and shown. The values of `headers` are sealed apart. */
const Stored = once(() =>
  v.object({
    title: v.exactOptional(v.string()),
    description: v.exactOptional(v.string()),
    parameters: v.exactOptional(Schema()),
    leave: v.picklist(['each', 'once', 'never']),
    http: v.exactOptional(
      v.object({
        method: v.picklist(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']),
        url: v.string(),
        body: v.exactOptional(v.string()),
      }),
    ),
    mcp: v.exactOptional(v.object({ url: v.string(), tools: v.array(Listed()) })),
    page: v.exactOptional(v.literal(true)),
    /** names of its headers */
    headers: v.exactOptional(v.array(v.string())),
  }),
)
export type StoredTool = v.InferOutput<ReturnType<typeof Stored>>

const KIND = 'tool'
export type Headers = Record<string, string>
const Headers = once(() => v.record(v.string(), v.string()))

const toolNotFound = (name: string) => coded('not_found', 404, `There is no tool \`${name}\`.`)

const storedIn = ({ body }: ResourceRow): StoredTool => readStored(Stored(), body)

/** A tool with its headers in clear, to be called. @throws ApiError 404 */
export async function openTool(
  env: Cloudflare.Env,
  name: string,
): Promise<StoredTool & { secrets: Headers }> {
  const row = await findResource(env.DB, KIND, name)
  if (!row) throw toolNotFound(name)
  const secrets = row.sealed === null ? {} : readStored(Headers(), await open(row.sealed, env))
  return { ...storedIn(row), secrets }
}

/**
 * Stores a tool. It replaces one of the same name. A header whose value is the mask of the one that is stored keeps it, unless the
 * tool now calls another host: otherwise whoever may store tools could have a secret sent to a host of their own.
 */
export async function putTool(
  env: Cloudflare.Env,
  name: string,
  tool: StoredTool,
  headers: Headers,
): Promise<ShownTool> {
  const sealed = Object.keys(headers).length === 0 ? null : await seal(JSON.stringify(headers), env)
  const body = JSON.stringify({ ...tool, headers: Object.keys(headers) })
  await putResource(env.DB, { kind: KIND, id: name, body, sealed })
  return getTool(env, name)
}

/** The stored values in the place of masked ones. @throws ApiError 400 for a mask of no stored value, or at another host */
export async function unmasked(
  env: Cloudflare.Env,
  name: string,
  url: string,
  headers: Headers,
): Promise<Headers> {
  const row = await findResource(env.DB, KIND, name)
  if (!row || row.sealed === null) return headers
  const { http, mcp, secrets } = await openTool(env, name)
  const isSameHost = URL.parse((http ?? mcp)?.url ?? '')?.origin === URL.parse(url)?.origin
  return Object.fromEntries(
    Object.entries(headers).map(([header, value]) => {
      const kept = secrets[header]
      if (kept === undefined || value !== maskSecret(kept)) return [header, value]
      if (isSameHost) return [header, kept]
      throw badRequest(
        `\`headers.${header}\`: The tool now calls another host, so its secret has to be sent anew.`,
      )
    }),
  )
}

/** A tool as the API shows it. Times in milliseconds since 1970. */
export type ShownTool = Omit<StoredTool, 'headers'> & {
  name: string
  headers?: Headers
  created_at: number
  updated_at: number
}

async function shown(env: Cloudflare.Env, row: ResourceRow): Promise<ShownTool> {
  const { headers: _, ...tool } = storedIn(row)
  const secrets = row.sealed === null ? {} : readStored(Headers(), await open(row.sealed, env))
  const masked = Object.entries(secrets).map(([header, value]) => [header, maskSecret(value)])
  return {
    name: row.id,
    ...tool,
    ...(masked.length > 0 && { headers: Object.fromEntries(masked) }),
    created_at: row.createdAt,
    updated_at: row.updatedAt,
  }
}

/** @throws ApiError 404 */
export async function getTool(env: Cloudflare.Env, name: string): Promise<ShownTool> {
  const row = await findResource(env.DB, KIND, name)
  if (!row) throw toolNotFound(name)
  return shown(env, row)
}

export const listTools = async (env: Cloudflare.Env): Promise<ShownTool[]> =>
  Promise.all((await listResources(env.DB, KIND)).map((row) => shown(env, row)))

/** @throws ApiError 404 */
export async function deleteTool(env: Cloudflare.Env, name: string): Promise<ShownTool> {
  const tool = await getTool(env, name)
  await deleteResource(env.DB, KIND, name)
  return tool
}

/** The tools that an assistant lists. One that was deleted since is left out. */
export async function toolsOf(env: Cloudflare.Env, names: readonly string[]): Promise<Tool[]> {
  const rows = new Map(
    names.some((name) => !isBuiltIn(name))
      ? (await listResources(env.DB, KIND)).map((row) => [row.id, row])
      : [],
  )
  return names.flatMap((name) => {
    if (isBuiltIn(name)) return builtIn[name]
    const row = rows.get(name)
    return row ? offered(name, storedIn(row)) : []
  })
}

export const isBuiltIn = (name: string): name is BuiltIn => (BUILT_IN as readonly string[]).includes(name)

/** What a model is offered of a stored tool: one tool, or those of an MCP server. */
function offered(name: string, { title = name, description = '', ...tool }: StoredTool): Tool[] {
  const { leave, http, mcp } = tool
  const parameters = tool.parameters ?? NO_PARAMETERS
  if (mcp) {
    return mcp.tools.map(({ readOnly, ...listed }) => ({
      ...listed,
      name: calledName(`${name}_${listed.name}`),
      title: listed.title ?? listed.name,
      // Only what its server says changes nothing goes without leave.
      leave: leave === 'never' && !readOnly ? ('each' as const) : leave,
      runs: 'server' as const,
      ...(readOnly && { readOnly }),
      source: { tool: name, name: listed.name },
    }))
  }
  const spec = { name, title, description, parameters }
  if (!http) return [{ ...spec, leave: 'never', runs: 'page' }]
  const readOnly = http.method === 'GET' && { readOnly: true as const }
  return [{ ...spec, leave, runs: 'server', ...readOnly, source: { tool: name } }]
}

/** Characters of a tool's name that all providers take. */
const LONGEST_NAME = 64

/** The name by which a model calls a tool: its own, as all providers take it. */
export const calledName = (name: string): string => name.replace(/[^\w-]/g, '_').slice(0, LONGEST_NAME)
const NO_PARAMETERS = { type: 'object', properties: {} }
