/** No client at all: `fetch` asks, and an EventSource reads, as `event-source-page.html` uses them. */
const parley = 'http://localhost:8108'
const headers = { 'x-typesense-api-key': 'xyz', accept: 'text/event-stream' }

/** @returns the conversation's id. The answer goes on without its reader. */
export async function ask(question) {
  const body = JSON.stringify({ question, model: 'docs', collections: ['docs'] })
  const asked = await fetch(`${parley}/conversations`, { method: 'POST', headers, body })
  await asked.body.cancel()
  return asked.headers.get('x-parley-conversation-id')
}

/** Reads an answer from its beginning. A connection that breaks is made again, after the last event. */
export function follow(id) {
  const events = new EventSource(`${parley}/conversations/${id}/events?x-typesense-api-key=xyz`)
  events.addEventListener('done', () => events.close())
  return events
}
