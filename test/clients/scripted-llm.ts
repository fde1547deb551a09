/** A provider with chat completions whose answers a test writes, and which remembers what it was sent. */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Sent {
  path: string
  headers: IncomingMessage['headers']
  // biome-ignore lint/suspicious/noExplicitAny: what was sent is what the tests look into
  body: any
}

export interface ScriptedLlm {
  host: string
  url: string
  sent: Sent[]
  /** what it answers next, and from then on */
  script: { status: number; body: unknown; delayMs: number; stream?: string[] }
  stop(): Promise<void>
}

export const says = (content: string): unknown => ({
  choices: [{ message: { role: 'assistant', content }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 7, completion_tokens: 3 },
})

export async function startScriptedLlm(): Promise<ScriptedLlm> {
  const llm: Pick<ScriptedLlm, 'sent' | 'script'> = {
    sent: [],
    script: { status: 200, body: says('An answer. [1]'), delayMs: 0 },
  }
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const part of request) text += part
    const body = text === '' ? undefined : JSON.parse(text)
    llm.sent.push({ path: request.url!, headers: request.headers, body })
    const { status, body: answer, delayMs, stream } = llm.script
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs))
    if (stream && body?.stream === true) {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const content of stream) {
        response.write(`data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`)
      }
      response.end('data: [DONE]\n\n')
      return
    }
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(typeof answer === 'string' ? answer : JSON.stringify(answer))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return Object.assign(llm, {
    host,
    url: `http://${host}`,
    stop: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  })
}

/** What a prompt says, whichever form its messages have. */
export const promptOf = ({ body }: Sent): string =>
  (body.messages as { role: string; content: string }[])
    .map(({ role, content }) => `${role}: ${content}`)
    .join('\n')
