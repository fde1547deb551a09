/** Turns that name what is to happen in them, as the counterparts read it, and what came of them. */
import { askInStream, gather, type Received } from '../event-source'
import { createShows, request } from '../harness'

// Where a wire's own framing shows that a part is missing, the reply counts as malformed.
export const CUT = /the stream ended before the answer was complete$|^Got malformed response from/

let shows: string

/** Makes what all questions are asked about, on the Parley that the harness is turned to. @returns its name */
export async function prepare(): Promise<string> {
  shows = await createShows()
  return shows
}

export const question = (model: string, name: string) => ({
  question: `What is good? [case: ${name}]`,
  model,
  collections: [shows],
})

/** Each time a turn of its own: without a key the same question again would be told the same answer. */
export const askAnew = (model: string, name: string) =>
  askInStream(question(model, name), { 'idempotency-key': crypto.randomUUID() })

/** How a turn ended for whoever watched it. */
export async function watch(
  model: string,
  name: string,
): Promise<{ events: Received[]; last: Received; id: string }> {
  const connection = await askAnew(model, name)
  const events = await gather(connection)
  // What fails before its first event is answered as JSON.
  const last = events.at(-1) ?? {
    id: '',
    event: 'error',
    data: JSON.parse(connection.bytes().toString()),
  }
  return { events, last, id: connection.headers.get('x-parley-conversation-id') ?? '' }
}

/** The same, asked for in one piece. */
export const whole = (model: string, name: string) =>
  request('POST', '/conversations', { ...question(model, name), stream: false })

/** Turns that a conversation keeps; none where it never came to be. */
export async function kept(id: string): Promise<unknown[]> {
  if (id === '') return []
  const { status, body } = await request('GET', `/conversations/${id}`)
  return status === 404 ? [] : body.turns
}

/** What a turn that was watched says it cost. */
export const usageIn = (events: Received[]): unknown =>
  events.find(({ event }) => event === 'usage')?.data.usage
