/** A page around `use-chat.js`: what was said, the sources that an answer cites, and a form. */
import { createRoot } from 'react-dom/client'
import { useParley } from './use-chat.js'

/** Of the documents that an answer was written from, those that it cites. */
function Sources({ parts, metadata }) {
  const cited = new Set(metadata?.citations?.map(({ sourceId }) => sourceId))
  const sources = parts.filter(({ type, sourceId }) => type.startsWith('source-') && cited.has(sourceId))
  if (sources.length === 0) return null
  return (
    <ul>
      {sources.map(({ sourceId, title, url }) => (
        <li key={sourceId}>{url ? <a href={url}>{title}</a> : title}</li>
      ))}
    </ul>
  )
}

function Chat() {
  const chat = useParley()
  return (
    <>
      {chat.messages.map((message) => (
        <section key={message.id} className={message.role}>
          <p>{message.parts.map(({ type, text }) => (type === 'text' ? text : ''))}</p>
          <Sources {...message} />
        </section>
      ))}
      <form action={(form) => chat.sendMessage({ text: form.get('question') })}>
        <input name="question" aria-label="Your question" placeholder="Ask a question" />
        <output>{chat.error?.message ?? chat.status}</output>
      </form>
    </>
  )
}

createRoot(document.getElementById('chat')).render(<Chat />)
