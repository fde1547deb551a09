/** Traces are removed after a day. */
import { env } from 'cloudflare:workers'
import { beforeAll, expect, it } from 'vitest'
import { sweepExpired } from '../../src/conversation/expiry'
import { ask, setStage } from '../api/parley/stage'
import { call } from '../api/typesense/api'

const DAY = 86_400
const now = () => Math.floor(Date.now() / 1_000)
const sweep = (seconds: number) => sweepExpired(env, seconds)

beforeAll(async () => {
  await setStage()
  // Turns outlive their traces only where the ttl was raised.
  expect((await call('PUT', '/conversations/models/m', { body: { ttl: 30 * DAY } }))[0]).toBe(200)
})

/** The searches of a turn's trace, and whether it is whole. */
async function traceOf(id: string, turn = 1) {
  const [, { turns }] = await call('GET', `/conversations/${id}/trace?turn=${turn}`)
  const { searches, shortened = false } = turns[0].trace
  return { searches: searches.length, shortened }
}

it('goes after a day, and its turn stays; a rated one is kept', async () => {
  const [, one] = await ask({ followups: true })
  const [, rated] = await ask({ question: 'How high is the Brandenburg Gate?' })
  await call('PUT', `/conversations/${rated.conversation_id}/turns/1/feedback`, { body: { rating: 'down' } })
  const [, before] = await call('GET', `/conversations/${one.conversation_id}`)

  await sweep(now() + DAY - 60)
  expect(await traceOf(one.conversation_id)).toEqual({ searches: 1, shortened: false })
  await sweep(now() + DAY + 60)
  expect(await traceOf(one.conversation_id)).toEqual({ searches: 0, shortened: true })
  expect(await traceOf(rated.conversation_id)).toEqual({ searches: 1, shortened: false })
  expect((await call('GET', `/conversations/${one.conversation_id}`))[1]).toEqual(before)
})

it('keeps suggestions that only an older trace has', async () => {
  const [, { conversation_id: id }] = await ask({ question: 'Who designed the Brandenburg Gate?' })
  const [, { turns }] = await call('GET', `/conversations/${id}/trace`)
  const trace = JSON.stringify({ ...turns[0].trace, followups: ['And when?'] })
  await env.DB.prepare('UPDATE turns SET followups = NULL, trace = ? WHERE conversation_id = ?')
    .bind(trace, id)
    .run()
  await sweep(now() + DAY + 120)
  expect(await traceOf(id)).toEqual({ searches: 0, shortened: true })
  expect((await call('GET', `/conversations/${id}`))[1].turns[0].followups).toEqual(['And when?'])
})

it('goes on after all that was walked is deleted, and where there are more than one step takes', async () => {
  await env.DB.prepare('DELETE FROM turns').run()
  await sweep(now() + DAY + 180)
  const trace = JSON.stringify({ question: 'q', searches: [{}], calls: [], answer: 'x'.repeat(200) })
  const insert =
    `INSERT INTO turns (conversation_id, turn, question, answer, finish_reason, citations, usage, timings, trace,
    created_at, expires_at) SELECT 'many', value, 'q', 'a', 'stop', '[]', '{}', '{}', ?, ?, ? FROM generate_series(1, 450)`.replace(
      'generate_series(1, 450)',
      "json_each('[' || (SELECT group_concat(n) FROM (WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 450) SELECT n FROM c)) || ']')",
    )
  const at = Date.now()
  await env.DB.prepare(insert)
    .bind(trace, at, at + 30 * DAY * 1_000)
    .run()
  const whole = async () =>
    (await env.DB.prepare("SELECT count(*) AS n FROM turns WHERE trace LIKE '%xxx%'").first<{ n: number }>())!
      .n
  expect(await whole()).toBe(450)
  await sweep(now() + DAY + 240)
  expect(await whole()).toBe(0)
})

it('stays as long as its turn with TRACE_HOURS 0', async () => {
  const [, { conversation_id: id }] = await ask({ question: 'How high is it all?' })
  await sweepExpired({ ...env, TRACE_HOURS: '0' }, now() + 20 * DAY)
  expect(await traceOf(id)).toEqual({ searches: 1, shortened: false })
  await sweepExpired({ ...env, TRACE_HOURS: '24' }, now() + 20 * DAY)
  expect(await traceOf(id)).toEqual({ searches: 0, shortened: true })
})
