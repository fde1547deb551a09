/** A page around `use-agent-chat.js`: what was said, and a form. */
import { Suspense } from 'react'
import { createRoot } from 'react-dom/client'
import { useParley } from './use-agent-chat.js'

function Chat() {
  const { messages, sendMessage, status, error } = useParley()
  return (
    <>
      {messages.map(({ id, role, parts }) => (
        <section key={id} className={role}>
          <p>{parts.map(({ type, text }) => (type === 'text' ? text : ''))}</p>
        </section>
      ))}
      <form action={(form) => sendMessage({ text: form.get('question') })}>
        <input name="question" aria-label="Your question" placeholder="Ask a question" />
        <output>{error?.message ?? status}</output>
      </form>
    </>
  )
}

createRoot(document.getElementById('chat')).render(
  <Suspense fallback="...">
    <Chat />
  </Suspense>,
)
