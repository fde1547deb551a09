/** Clients of every wire, each behind the same few calls: how they ask, what they show, and what they cannot do. */
import { type Task, TaskState } from '@a2a-js/sdk'
import { HttpAgent } from '@ag-ui/client'
import { AIChatProtocolClient } from '@microsoft/ai-chat-protocol'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import OpenAI from 'openai'
import { expect } from 'vitest'
import { answerIn, connectA2a, messageOf, textIn } from '../a2a-client'
import { openAgentChat, textIn as said } from '../agent-chat'
import { KEY, url } from '../harness'
import { makeChat, textOf } from '../headless-chat'
import { openSearch, responses, typesense } from './api-rows'
import { completionHook, langChain, textTransport } from './framework-rows'
import { bearer, NO_RESUME, type Options, type Row, type Said } from './row'
import { deepChat, n8n, own } from './widget-rows'

const uiStream: Row = {
  name: 'AI SDK `useChat` (`ai` 7)',
  open(assistant) {
    const chat = makeChat('ai 7', { api: `${url}/ui/${assistant}`, key: KEY, id: crypto.randomUUID() })
    return {
      async ask(text, { onText, signal } = {}) {
        let shown = 0
        const watch = setInterval(() => {
          const now = chat.lastMessage?.role === 'assistant' ? textOf(chat.lastMessage) : ''
          if (now.length > shown) onText?.(now.slice(shown))
          shown = Math.max(shown, now.length)
        }, 5)
        signal?.addEventListener('abort', () => void chat.stop())
        await chat.sendMessage({ text })
        clearInterval(watch)
        if (chat.error) throw chat.error
        const parts = chat.lastMessage?.parts ?? []
        onText?.(textOf(chat.lastMessage).slice(shown))
        return {
          text: textOf(chat.lastMessage),
          sources: parts.flatMap((part) => (part.type === 'source-document' ? [part.title] : [])),
        }
      },
      async resume() {
        await chat.resumeStream()
        return textOf(chat.lastMessage)
      },
    }
  },
}

const agents: Row = {
  name: "Cloudflare's `useAgentChat` (`agents`)",
  open(assistant) {
    const name = crypto.randomUUID()
    const open = async () => {
      const made = await openAgentChat(assistant, name)
      await expect.poll(() => made.agent()?.identified || made.refused(), WAIT).toBe(true)
      if (made.refused()) throw new Error('The socket was refused.')
      return made
    }
    return {
      async ask(text, { onText, signal } = {}) {
        const made = await open()
        let shown = 0
        const show = () => {
          const now = made.last()?.role === 'assistant' ? said(made.last()) : ''
          if (now.length > shown) onText?.(now.slice(shown))
          shown = Math.max(shown, now.length)
        }
        const watch = setInterval(show, 5)
        // As a page that is closed.
        signal?.addEventListener('abort', () => made.leave())
        const left = new Promise((_, reject) => signal?.addEventListener('abort', reject))
        try {
          await Promise.race([made.chat()?.sendMessage({ text }), left])
          await expect.poll(() => made.chat()?.status, WAIT).toMatch(/^(ready|error)$/)
          show()
          const { error } = made.chat() ?? {}
          if (error) throw error
          const parts = made.last()?.parts ?? []
          return {
            text: said(made.last()),
            sources: parts.flatMap((part) => (part.type === 'source-document' ? [part.title] : [])),
          }
        } finally {
          clearInterval(watch)
          made.leave()
        }
      },
      async resume() {
        const made = await open()
        await expect.poll(() => made.chat()?.status, WAIT).toBe('streaming')
        await expect.poll(() => made.chat()?.status, WAIT).toBe('ready')
        made.leave()
        return said(made.last())
      },
    }
  },
}

const WAIT = { timeout: 25_000 }

const openai = () => new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0 })

const completions: Row = {
  name: 'OpenAI SDK, chat completions',
  lacks: { Resume: NO_RESUME },
  open(model) {
    const metadata = { conversation_id: crypto.randomUUID() }
    return {
      async ask(content, { onText, signal } = {}) {
        const stream = await openai().chat.completions.create(
          { model, stream: true, metadata, messages: [{ role: 'user', content }] },
          { signal },
        )
        let text = ''
        let sources: string[] = []
        for await (const { choices } of stream) {
          const delta = choices[0]?.delta as {
            content?: string
            context?: { citations: { title: string }[] }
          }
          if (delta?.content) onText?.(delta.content)
          text += delta?.content ?? ''
          sources = delta?.context?.citations.map(({ title }) => title) ?? sources
        }
        // The SDK ends an aborted stream without an error.
        if (signal?.aborted) throw new Error('aborted')
        return { text, sources }
      },
      async whole(content) {
        const { choices } = await openai().chat.completions.create({
          model,
          metadata,
          messages: [{ role: 'user', content }],
        })
        return choices[0]?.message.content ?? ''
      },
    }
  },
}

const aiChat: Row = {
  name: '`@microsoft/ai-chat-protocol`',
  lacks: { Resume: NO_RESUME },
  open(assistant) {
    const client = new AIChatProtocolClient(
      `${url}/a/${assistant}/chat`,
      { key: KEY },
      { credentials: { apiKeyHeaderName: 'x-typesense-api-key' }, retryOptions: { maxRetries: 0 } },
    )
    let session: unknown
    const options = () => (session === undefined ? {} : { sessionState: session })
    return {
      async ask(content, { onText, signal } = {}) {
        const stream = await client.getStreamedCompletion([{ role: 'user', content }], {
          ...options(),
          ...(signal && { abortSignal: signal }),
        })
        let text = ''
        let sources: string[] = []
        for await (const { delta, sessionState, context } of stream) {
          session ??= sessionState
          const { data_points: points } = (context ?? {}) as { data_points?: { text: string[] } }
          sources = points?.text ?? sources
          if (delta.content) onText?.(delta.content)
          text += delta.content ?? ''
        }
        return { text, sources }
      },
      async whole(content) {
        const { message, sessionState } = await client.getCompletion([{ role: 'user', content }], options())
        session ??= sessionState
        return message.content
      },
    }
  },
}

const mcp: Row = {
  name: 'MCP (`@modelcontextprotocol/sdk`)',
  lacks: { Resume: 'the server keeps no session; the finished answer is in the conversation' },
  open(assistant) {
    let id: string | undefined
    return {
      async ask(question, { onText, signal } = {}) {
        const client = new Client({ name: 'a test', version: '1' })
        const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp/${assistant}`), {
          requestInit: { headers: bearer },
        })
        await client.connect(transport)
        const result = await client.callTool(
          { name: 'ask', arguments: { question, ...(id !== undefined && { conversation_id: id }) } },
          undefined,
          {
            onprogress: ({ message = '' }) => {
              if (!/^\d+ documents found/.test(message)) onText?.(message)
            },
            ...(signal && { signal }),
          },
        )
        await client.close()
        if (result.isError) throw new Error(JSON.stringify(result.content))
        const { answer, conversation_id, sources } = result.structuredContent as {
          answer: string
          conversation_id: string
          sources: { title: string }[]
        }
        id = conversation_id
        return { text: answer, sources: sources.map(({ title }) => title) }
      },
    }
  },
}

const agUi: Row = {
  name: 'AG-UI (`@ag-ui/client`), CopilotKit',
  open(assistant) {
    const threadId = crypto.randomUUID()
    const make = (path: string) => new HttpAgent({ url: url + path, threadId, headers: bearer })
    const run = async (
      agent: HttpAgent,
      content: string,
      { onText, signal }: Options = {},
    ): Promise<Said> => {
      let sources: string[] = []
      let failure: string | undefined
      signal?.addEventListener('abort', () => agent.abortRun())
      agent.addMessage({ id: crypto.randomUUID(), role: 'user', content })
      await agent.runAgent(
        {},
        {
          onTextMessageContentEvent: ({ event }) => onText?.(event.delta),
          onCustomEvent: ({ event }) => {
            const { name, value } = event as { name: string; value: { title: string }[] }
            if (name === 'sources') sources = value.map(({ title }) => title)
          },
          onRunErrorEvent: ({ event }) => {
            failure = event.message
          },
        },
      )
      if (failure !== undefined) throw new Error(failure)
      if (signal?.aborted) throw new Error('aborted')
      return { text: String(agent.messages.at(-1)?.content), sources }
    }
    const agent = make(`/agui/${assistant}`)
    return {
      ask: (question, options) => run(agent, question, options),
      resume: async () => (await run(make(`/copilotkit/agent/${assistant}/connect`), 'ignored')).text,
    }
  },
}

const a2a: Row = {
  name: 'A2A (`@a2a-js/sdk`)',
  open(assistant) {
    let contextId = ''
    let taskId = ''
    const connect = () => connectA2a(assistant)
    const message = (text: string) => messageOf(text, contextId === '' ? {} : { contextId })
    return {
      async ask(question, { onText, signal } = {}) {
        const client = await connect()
        let text = ''
        let sources: string[] = []
        const stream = client.sendMessageStream(message(question), signal ? { signal } : {})
        for await (const { payload } of stream) {
          if (payload?.$case === 'task') {
            contextId = payload.value.contextId
            taskId = payload.value.id
          }
          if (payload?.$case === 'artifactUpdate') {
            const piece = textIn(payload.value.artifact?.parts)
            if (piece !== '') onText?.(piece)
            text += piece
            const { sources: found = [] } = (payload.value.artifact?.metadata ?? {}) as {
              sources?: { title: string }[]
            }
            if (found.length > 0) sources = found.map(({ title }) => title)
          }
          if (
            payload?.$case === 'statusUpdate' &&
            payload.value.status?.state === TaskState.TASK_STATE_FAILED
          ) {
            throw new Error(textIn(payload.value.status.message?.parts))
          }
        }
        if (signal?.aborted) throw new Error('aborted')
        return { text, sources }
      },
      async whole(question) {
        const task = (await (await connect()).sendMessage(message(question))) as Task
        contextId = task.contextId
        return answerIn(task)
      },
      async resume() {
        let text = ''
        for await (const { payload } of (await connect()).resubscribeTask({ tenant: '', id: taskId })) {
          if (payload?.$case === 'artifactUpdate') text += textIn(payload.value.artifact?.parts)
        }
        return text
      },
    }
  },
}

export const ROWS: Row[] = [
  own,
  typesense,
  openSearch,
  uiStream,
  textTransport,
  completionHook,
  agents,
  completions,
  responses,
  langChain,
  aiChat,
  mcp,
  agUi,
  a2a,
  deepChat,
  n8n,
]
