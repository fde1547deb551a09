/**
 * Stores, lists, reads and deletes the tools of assistants. A tool carries secrets, and every assistant may list it: a key needs the
 * right to all collections.
 */
import { requireAllCollections } from '../../auth/authenticate'
import { badRequest } from '../../errors'
import { checkHeaders } from '../../models/call'
import { requireAllowed } from '../../models/egress'
import { listMcpTools, requireCallable } from '../../tools/call'
import { deleteTool, getTool, listTools, putTool, unmasked } from '../../tools/tool'
import { requireSchema } from '../../turn/form'
import { guarded, type Serving } from './route'

/** Headers of credentials, which a tool has itself, where models have properties for them. */
const CREDENTIALS = ['authorization', 'api-key', 'x-api-key', 'x-goog-api-key', 'cookie']

/** How long an MCP server may take to list its tools, in milliseconds. */
const LISTING_MS = 20_000
/** Tools of one MCP server: a model chooses worse among more. */
const MOST_LISTED = 32

/** The tools of an MCP server that were asked for, as it describes them. @throws ApiError 400 */
async function mcpTools(
  { env, request }: Serving<'putTool'>,
  { url, tools: names }: { url: string; tools?: string[] | undefined },
  headers: Record<string, string>,
) {
  requireAllowed(url, env, '`mcp.url`')
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(LISTING_MS)])
  const all = await listMcpTools(env, { url, headers }, signal)
  const missing = names?.find((name) => !all.some((tool) => tool.name === name))
  if (missing !== undefined) {
    const known = all.map(({ name }) => `\`${name}\``).join(', ')
    throw badRequest(`\`mcp.tools\`: The server has no tool \`${missing}\`. It has ${known || 'none'}.`)
  }
  const tools = names ? all.filter(({ name }) => names.includes(name)) : all
  if (tools.length === 0 || tools.length > MOST_LISTED) {
    throw badRequest(
      `\`mcp.tools\`: The server has ${tools.length} tools. Name up to ${MOST_LISTED} of them.`,
    )
  }
  return { url, tools }
}

export const tools = guarded(requireAllCollections, {
  listTools: async ({ env }) => ({ tools: await listTools(env) }),

  async putTool(served) {
    const { env, path, body } = served
    const { headers: given = {}, mcp, http, parameters, ...tool } = body
    const headers = await unmasked(env, path.name, (http ?? mcp)?.url ?? '', given)
    checkHeaders(headers, CREDENTIALS)
    if (parameters) requireSchema(parameters)
    if (http) requireCallable(http, env)
    const listed = mcp && (await mcpTools(served, mcp, headers))
    const stored = {
      ...tool,
      ...(parameters && { parameters }),
      ...(http && { http }),
      ...(listed && { mcp: listed }),
    }
    return putTool(env, path.name, stored, headers)
  },

  getTool: ({ env, path }) => getTool(env, path.name),
  deleteTool: ({ env, path }) => deleteTool(env, path.name),
})
