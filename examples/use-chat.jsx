/** React's useChat of the AI SDK. A reload in the middle of an answer resumes it. */
import { useChat } from '@ai-sdk/react'
import { DefaultChatTransport, generateId } from 'ai'
import { useEffect } from 'react'
import { createRoot } from 'react-dom/client'

const transport = new DefaultChatTransport({
  api: 'http://localhost:8108/ui/default',
  headers: { authorization: 'Bearer xyz' },
})
// What survives a reload: the name of the chat, which only this tab knows, and what was said in it.
sessionStorage.chat ??= generateId()
const said = JSON.parse(sessionStorage.said ?? '[]')

function Chat() {
  const chat = useChat({ id: sessionStorage.chat, messages: said, transport, resume: said.length > 0 })
  useEffect(() => {
    sessionStorage.said = JSON.stringify(chat.messages)
  }, [chat.messages])
  const ask = (form) => chat.sendMessage({ text: form.get('question') })
  return (
    <>
      {chat.messages.map(({ id, role, parts }) => (
        <p key={id} className={role}>
          {parts.map((part) => (part.type === 'text' ? part.text : ''))}
          <small>
            {parts.flatMap((part) => (part.type.startsWith('source-') ? [part.title] : [])).join(', ')}
          </small>
        </p>
      ))}
      <form action={ask}>
        <input name="question" aria-label="Your question" />
        <output>{chat.error?.message ?? chat.status}</output>
      </form>
    </>
  )
}

createRoot(document.getElementById('chat')).render(<Chat />)
