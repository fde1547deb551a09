/** The nodes of a cluster are the operator's: their addresses, and why Parley may not call one. */
import { beforeAll, expect, it } from 'vitest'
import { makeKey, setStage } from '../parley/stage'
import { call } from './api'

beforeAll(() => setStage())

it('are not shown to a key made for pages', async () => {
  const key = await makeKey({ actions: ['collections:get'], limits: { turns_per_day: 10 } })
  const own = await makeKey({ actions: ['collections:get'] })
  expect((await call('GET', '/collections/facts/nodes', { key: own }))[0]).toBe(200)
  expect((await call('GET', '/collections/facts', { key }))[0]).toBe(200)
  expect((await call('GET', '/collections/facts/nodes', { key }))[0]).toBe(401)
})
