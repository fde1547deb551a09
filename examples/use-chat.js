/** React's useChat of the AI SDK, as `use-chat-page.jsx` uses it. A reload in the middle of an answer resumes it. */
import { useChat } from '@ai-sdk/react'
import { DefaultChatTransport, generateId } from 'ai'
import { useEffect } from 'react'

const headers = { authorization: 'Bearer xyz' }
const transport = new DefaultChatTransport({ api: 'http://localhost:8108/ui/default', headers })
// What survives a reload: the name of the chat, which only this tab knows, and what was said in it.
sessionStorage.chat ??= generateId()
const messages = JSON.parse(sessionStorage.said ?? '[]')

export function useParley() {
  const chat = useChat({ id: sessionStorage.chat, messages, transport, resume: messages.length > 0 })
  useEffect(() => sessionStorage.setItem('said', JSON.stringify(chat.messages)), [chat.messages])
  return chat
}
