/** A real MCP server, the official SDK's, with a tool that looks something up and one that changes something. */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { z } from 'zod'
import { serve } from '../serve'

export interface ToolServer {
  url: string
  /** what was looked up and booked, in order */
  done: string[]
  /** authorization headers of its calls */
  authorizations: Set<string | undefined>
  /** what a call does instead: it never replies, its connection breaks, or its stream stays open after the reply */
  fails: 'never' | 'breaks' | 'stays open' | undefined
  /** resolves when a stream that stays open is left */
  left: Promise<void> | undefined
  /** what is said of an order, in the place of the usual */
  reply: string | undefined
  /** whether replies are JSON; else they are events */
  isJson: boolean
  /** whether it keeps sessions */
  hasSessions: boolean
  stop(): Promise<void>
}

export async function startToolServer(): Promise<ToolServer> {
  const state = {
    done: [] as string[],
    authorizations: new Set<string | undefined>(),
    fails: undefined as ToolServer['fails'],
    left: undefined as ToolServer['left'],
    isJson: false,
    hasSessions: false,
    reply: undefined as string | undefined,
  }
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  const makeServer = (): McpServer => {
    const server = new McpServer({ name: 'shop', version: '1' })
    const text = (said: string) => ({ content: [{ type: 'text' as const, text: said }] })
    server.registerTool(
      'lookup_order',
      {
        title: 'Look up an order',
        description: 'Looks up an order by its number.',
        inputSchema: { id: z.string() },
        annotations: { readOnlyHint: true },
      },
      async ({ id }) => {
        state.done.push(`lookup ${id}`)
        if (state.fails === 'never') await new Promise(() => {})
        if (id === '0') return { ...text('There is no order 0.'), isError: true }
        return text(state.reply ?? `Order ${id} was sent on Monday.`)
      },
    )
    server.registerTool(
      'book_table',
      { title: 'Book a table', description: 'Books a table.', inputSchema: { at: z.string() } },
      async ({ at }) => {
        state.done.push(`book ${at}`)
        return text(`A table is booked at ${at}.`)
      },
    )
    server.registerTool('hidden', { description: 'Nobody may call it.' }, async () => text('oops'))
    return server
  }
  const served = await serve(async (request, response) => {
    state.authorizations.add(request.headers.authorization)
    let body = ''
    for await (const piece of request) body += piece
    if (state.fails === 'breaks' && body.includes('tools/call')) return void response.destroy()
    if (state.fails === 'stays open' && body.includes('tools/call')) {
      // As servers do that go on to send notifications.
      response.end = (() => response) as typeof response.end
      state.left = new Promise((resolve) => response.on('close', () => resolve()))
    }
    const known = sessions.get(String(request.headers['mcp-session-id']))
    const transport =
      known ??
      new StreamableHTTPServerTransport({
        sessionIdGenerator: state.hasSessions ? () => crypto.randomUUID() : undefined,
        enableJsonResponse: state.isJson,
        onsessioninitialized: (id) => void sessions.set(id, transport),
      })
    if (!known) await makeServer().connect(transport)
    await transport.handleRequest(request, response, body === '' ? undefined : JSON.parse(body))
  })
  return Object.assign(state, { url: served.url, stop: served.stop })
}
