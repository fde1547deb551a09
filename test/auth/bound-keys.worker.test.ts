/** A key that is bound to an assistant, and may lie open in a page: what its holder makes of it. */
import { beforeAll, expect, it } from 'vitest'
import { setChatStage } from '../api/ai-chat/stage'
import { call, send } from '../api/typesense/api'
import { scopedKey } from '../api/typesense/conversing'

let bound: string

beforeAll(async () => {
  await setChatStage()
  const body = {
    description: '',
    actions: ['documents:search'],
    collections: ['*'],
    limits: { assistant: 'plans' },
  }
  bound = (await call('POST', '/keys', { body }))[1].value
})

const open = async (key: string): Promise<[number, string]> => {
  const response = await send('GET', '/a/plans/content/Plan.pdf%23page=2', { key })
  return [response.status, await response.text()]
}

it('opens a cited document as its assistant shows it', async () => {
  const [status, text] = await open(bound)
  expect([status, text]).toEqual([200, expect.stringContaining('hearing care')])
  expect(text).not.toContain('hush')
})

it('signs no key that shows more of documents than the assistant does', async () => {
  for (const parameters of [
    { exclude_fields: 'id' },
    { include_fields: 'text,sourcepage,secret' },
    { query_by: 'secret' },
    { pinned_hits: 'p3:1', filter_curated_hits: false },
  ]) {
    expect((await open(await scopedKey(bound, parameters)))[0], JSON.stringify(parameters)).toBe(401)
  }
})

it('signs keys that show less', async () => {
  expect((await open(await scopedKey(bound, { filter_by: 'tenant:=a' })))[0]).toBe(200)
  expect((await open(await scopedKey(bound, { filter_by: 'tenant:=b' })))[0]).toBe(404)
  expect((await open(await scopedKey(bound, { expires_at: 4_000_000_000, user_id: 'ann' })))[0]).toBe(200)
})
