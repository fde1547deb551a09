/** Microsoft's client of the AI Chat Protocol before a limit. The case is one of contract chat-protocols, section 5. */
import { AIChatProtocolClient } from '@microsoft/ai-chat-protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask, createAssistant, createHistory, createModel, createShows, KEY, request, url } from './harness'
import { type Paced, startPaced, words } from './paced'

let paced: Paced

beforeAll(async () => {
  paced = await startPaced()
})
afterAll(() => paced.stop())

type Options = ConstructorParameters<typeof AIChatProtocolClient>[2]

const client = (path: string, options: Options = {}): AIChatProtocolClient =>
  new AIChatProtocolClient(
    `${url}${path}/chat`,
    { key: KEY },
    { credentials: { apiKeyHeaderName: 'x-typesense-api-key' }, ...options },
  )

const user = (content: string) => ({ role: 'user' as const, content })

test('a conversation without room is waited for by the client, as long as it is told to (case 36)', async () => {
  const shows = await createShows()
  const history_collection = await createHistory()
  /** A model that says `count` words, one in `gap` milliseconds. */
  const pacedModel = (count: number, gap: number) =>
    createModel({ model_name: `openai/paced-${count}-${gap}`, openai_url: paced.url, history_collection })
  const quick = await pacedModel(10, 5)
  const slow = await pacedModel(20, 200)
  const path = `/a/${await createAssistant({ model: quick, collections: [shows] })}`
  const first = await client(path).getCompletion([user('an action series')])

  // A turn of four seconds, and behind it more than have room: all of them wait when the client comes.
  const begun = paced.begun
  const long = ask(slow, shows, { conversation_id: first.sessionState })
  await expect.poll(() => paced.begun, { timeout: 10_000 }).toBe(begun + 1)
  const crowd = Array.from({ length: 36 }, async (_, index) => {
    const body = { messages: [user(`an action series ${index}`)], sessionState: first.sessionState }
    const response = await fetch(`${url}${path}/chat`, {
      method: 'POST',
      headers: { 'x-typesense-api-key': KEY, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const { status, headers } = response
    return { status, retryAfter: headers.get('retry-after'), reply: await response.json() }
  })
  const refused = await Promise.any(
    crowd.map((one) => one.then((answer) => (answer.status === 429 ? answer : Promise.reject(answer)))),
  )
  expect(refused).toMatchObject({ retryAfter: '5', reply: { error: { code: 'too_many_requests' } } })
  const statuses: number[] = []
  const watched = client(path, {
    additionalPolicies: [
      {
        position: 'perRetry',
        policy: {
          name: 'watch',
          sendRequest: async (sent, next) => {
            const response = await next(sent)
            statuses.push(response.status)
            return response
          },
        },
      },
    ],
  })
  const { sessionState } = first
  const answer = await watched.getCompletion([user('And then?')], { sessionState })
  expect(answer.message.content).toBe(words(10).join(''))
  expect([statuses[0], statuses.at(-1)]).toEqual([429, 200])
  expect((await long).status).toBe(200)
  const served = (await Promise.all(crowd)).filter(({ status }) => status === 200)
  const { turns } = (await request('GET', `/conversations/${sessionState}?limit=100`)).body
  expect(turns).toHaveLength(served.length + 3)
})
