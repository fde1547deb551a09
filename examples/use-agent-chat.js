/** `useAgentChat` of Cloudflare's agents, as `use-agent-chat-page.jsx` uses it: an answer, and a reload, over one WebSocket. */
import { useAgentChat } from 'agents/chat/react'
import { useAgent } from 'agents/react'

const query = { 'x-typesense-api-key': 'xyz' }
// The name of the chat, which only this tab knows: whoever knows it reads the chat.
sessionStorage.agentChat ??= crypto.randomUUID()

export function useParley() {
  const agent = useAgent({ agent: 'default', name: sessionStorage.agentChat, host: 'localhost:8108', query })
  return useAgentChat({ agent })
}
