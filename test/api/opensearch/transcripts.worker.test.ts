/** Messages of a memory whose client brought a transcript: they are the oldest, in both orders and on every page. */

import { env } from 'cloudflare:test'
import { beforeAll, expect, it } from 'vitest'
import { contentOf } from '../../../src/lib/parts'
import { asking, setStage, take } from '../../conversation/stage'
import { request } from './api'

const MEMORY = '/_plugins/_ml/memory'

beforeAll(() => setStage())

const LINES = 7
const inputs = Array.from({ length: LINES }, (_, at) => `said before ${at}`)

/** A conversation of two turns. What was said before them is older than they are by a minute. */
async function withTranscript(): Promise<string> {
  const first = await asking('Who directed Alien?')
  await take(first)
  await take({ ...first, question: contentOf('Who directed Heat?'), continues: true })
  const then = Math.floor(Date.now() / 1000) - 60
  const statement = env.DB.prepare(
    `INSERT INTO messages (history_id, document_id, conversation_id, model_id, role, message, timestamp)
      VALUES ('h', ?1, ?2, 'm', ?3, ?4, ?5)`,
  )
  const rows = inputs.flatMap((input, at) => [
    // One of them was never answered.
    ['user', input, at],
    ...(at === 3 ? [] : [['assistant', `answer ${at}`, at]]),
  ])
  const id = first.conversationId
  await env.DB.batch(
    rows.map(([role, text, at]) => statement.bind(`${id}-${role}-${at}`, id, role, text, then)),
  )
  return id
}

it('is the same by pages of any size', async () => {
  const id = await withTranscript()
  const all = [...inputs, 'Who directed Alien?', 'Who directed Heat?']
  const page = async (path: string, list: string, size: number) => {
    const seen: { input: string; id: string }[] = []
    for (let token: number | undefined = 0; token !== undefined; ) {
      const query: string = `?max_results=${size}&next_token=${token}`
      const [status, body] = await request('GET', `${MEMORY}/${path}${query}`)
      expect(status).toBe(200)
      for (const { input, message_id, interaction_id } of body[list])
        seen.push({ input, id: message_id ?? interaction_id })
      token = body.next_token
    }
    return seen
  }
  const whole = await page(`${id}/messages`, 'messages', 100)
  expect(whole.map(({ input }) => input)).toEqual(all)
  for (const size of [1, 2, 3, 8, 9, 10]) {
    expect(await page(`${id}/messages`, 'messages', size)).toEqual(whole)
    expect(await page(`conversation/${id}`, 'interactions', size)).toEqual(whole.toReversed())
  }
  for (const message of whole) {
    const [, body] = await request('GET', `${MEMORY}/message/${message.id}`)
    expect(body).toMatchObject({ input: message.input, message_id: message.id })
  }
  const [, unanswered] = await request('GET', `${MEMORY}/message/${whole[3]!.id}`)
  expect(unanswered.response).toBeUndefined()
  expect((await request('GET', `${MEMORY}/message/${id}_b7`))[0]).toBe(404)
})
