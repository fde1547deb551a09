/** Microsoft's AI Chat SDK. A reload in the middle of an answer loses sight of it; the next question goes on after it. */
import { AIChatProtocolClient } from '@microsoft/ai-chat-protocol'

const client = new AIChatProtocolClient(
  'http://localhost:8108/chat',
  { key: 'xyz' },
  { credentials: { apiKeyHeaderName: 'x-api-key' }, retryOptions: { maxRetries: 0 } },
)
const [form] = document.forms
const answer = document.querySelector('#answer')

form.onsubmit = async (event) => {
  event.preventDefault()
  answer.textContent = ''
  form.lastElementChild.textContent = ''
  const messages = [{ role: 'user', content: form.question.value }]
  try {
    const sessionState = sessionStorage.session
    const lines = await client.getStreamedCompletion(messages, { ...(sessionState && { sessionState }) })
    for await (const line of lines) {
      if (line.sessionState) sessionStorage.session = line.sessionState
      answer.append(line.delta.content ?? '')
    }
    form.lastElementChild.textContent = 'ready'
  } catch (error) {
    form.lastElementChild.textContent = error.message
  }
}
