import { expect, it } from 'vitest'
import { beginning, hasBegun, MOST_BEGINNINGS, requireRoomToBegin } from '../../src/conversation/beginnings'

const asked = () => ({ events: new ReadableStream<Uint8Array>() })

it('takes so many turns at their beginning and refuses more, until the first events of one are read', async () => {
  const turns = await Promise.all(
    Array.from({ length: MOST_BEGINNINGS }, () => beginning(async () => asked())),
  )
  const full = { status: 503, retryAfter: 1 }
  expect(() => requireRoomToBegin()).toThrow(expect.objectContaining(full))
  await expect(beginning(async () => asked())).rejects.toMatchObject(full)
  hasBegun(turns[0]!.events)
  hasBegun(turns[0]!.events)
  const last = await beginning(async () => asked())
  expect(() => requireRoomToBegin()).toThrow()
  hasBegun(last.events)
  // One that fails leaves its place, and so does one that nobody reads.
  await expect(beginning(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
  requireRoomToBegin()
  await beginning(async () => asked())
  expect(() => requireRoomToBegin()).toThrow()
  requireRoomToBegin(Date.now() + 10_000)
})
