/** Clients of the Model Context Protocol for tests: the official SDK's, and one without it. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expect } from 'vitest'
import { KEY, url } from './harness'

const at = (path: string) => new URL(url + path)

/** A client that has connected. It checks structured content against the tools' schemas. */
export async function connect(path: string, key = KEY, headers: Record<string, string> = {}) {
  const client = new Client({ name: 'a test', version: '1' })
  const transport = new StreamableHTTPClientTransport(at(path), {
    requestInit: { headers: { authorization: `Bearer ${key}`, ...headers } },
  })
  await client.connect(transport)
  await client.listTools()
  return client
}

export const textIn = ({ content }: Record<string, unknown>): string =>
  (content as { text: string }[]).map(({ text }) => text).join('')

export interface Answer {
  conversation_id: string
  turn: number
  answer: string
  sources: { id: string; title: string; cited: boolean }[]
}

export async function ask(client: Client, args: Record<string, unknown>): Promise<Answer> {
  const result = await client.callTool({ name: 'ask', arguments: args })
  expect(result.isError, textIn(result)).toBeUndefined()
  return result.structuredContent as unknown as Answer
}

/** A message as a program without the SDK sends it. */
export async function post(body: unknown, headers: Record<string, string>, path: string) {
  const response = await fetch(at(path), {
    method: 'POST',
    headers: {
      authorization: `Bearer ${KEY}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await response.text()
  // biome-ignore lint/suspicious/noExplicitAny: replies are checked field by field
  const json: any = response.headers.get('content-type')?.includes('json') ? JSON.parse(text) : undefined
  return { status: response.status, headers: response.headers, text, json }
}

export const rpc = (method: string, params: unknown = {}, id = 1) => ({ jsonrpc: '2.0', id, method, params })
