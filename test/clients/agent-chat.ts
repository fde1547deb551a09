/** `useAgentChat` of Cloudflare's package `agents`, from outside of React. */

import { useAgentChat } from 'agents/chat/react'
import { useAgent } from 'agents/react'
import type { UIMessage } from 'ai'
import { KEY, url } from './harness'
import { stageHook } from './react-stage'

export interface AgentOptions {
  key?: string
  /** of the socket's address, besides the key */
  query?: Record<string, string>
}

export type AgentChat = Awaited<ReturnType<typeof openAgentChat>>

/** Opens a chat as a page does that has just been loaded. */
export async function openAgentChat(
  assistant: string,
  name: string,
  { key = KEY, query }: AgentOptions = {},
) {
  let refused = false
  const staged = await stageHook(() => {
    const agent = useAgent({
      agent: assistant,
      name,
      host: new URL(url).host,
      query: { 'x-typesense-api-key': key, ...query },
      maxRetries: 2,
      onError: () => {
        refused = true
      },
    })
    return { agent, chat: useAgentChat({ agent, throttle: false }) }
  })
  const chat = () => staged.current()?.chat
  return {
    chat,
    refused: () => refused,
    leave: () => staged.leave(),
    agent: () => staged.current()?.agent,
    messages: (): UIMessage[] => chat()?.messages ?? [],
    last: (): UIMessage | undefined => chat()?.messages.at(-1),
  }
}

export const textIn = (message: UIMessage | undefined): string =>
  (message?.parts ?? []).flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')
