/** Microsoft's AI Chat SDK, as `ai-chat-page.html` uses it. */
import { AIChatProtocolClient } from '@microsoft/ai-chat-protocol'

const options = { credentials: { apiKeyHeaderName: 'x-api-key' }, retryOptions: { maxRetries: 0 } }
const client = new AIChatProtocolClient('http://localhost:8108/chat', { key: 'xyz' }, options)

/** Shows an answer as it is written. A reload in the middle of it loses sight of it; the next question goes on after it. */
export async function ask(content, show) {
  const { session } = sessionStorage
  const more = session && { sessionState: session }
  for await (const line of await client.getStreamedCompletion([{ role: 'user', content }], more)) {
    if (line.sessionState) sessionStorage.session = line.sessionState
    show(line.delta.content ?? '')
  }
}
