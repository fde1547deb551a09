/** Turns that others replaced stay as versions, which are read where they are asked for. */
import { runDurableObjectAlarm } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { getConversation } from '../../src/conversation/conversations'
import { deleteTurn } from '../../src/db/turns'
import { textOf } from '../../src/lib/parts'
import type { AskRequest } from '../../src/turn/request'
import {
  ADMIN,
  asking,
  messagesOf,
  openai,
  rowsOf,
  setStage,
  speaking,
  stub,
  take,
  withoutTables,
} from './stage'

let id: string

/** Asks, to be given this answer. */
const answered = (question: string, answer: string, parts: Partial<AskRequest> = {}) => {
  vi.stubGlobal('fetch', speaking(answer))
  return asking(question, { conversationId: id, continues: true, named: true, model: openai, ...parts }).then(
    take,
  )
}

beforeAll(() => setStage())
beforeEach(() => {
  id = crypto.randomUUID()
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})

/** A reading: each turn's number and answer, and its versions. */
const versions = async (version?: number) => {
  const { turns } = await getConversation(env, ADMIN, id, version === undefined ? {} : { version })
  return turns.map(({ turn, answer, versions }) => [turn, answer, versions])
}

it('of a turn are all that answered it, and each is read with what followed', async () => {
  await answered('one', 'first')
  await answered('two', 'second')
  await answered('three', 'third')
  expect(await versions()).toEqual([
    [1, 'first', undefined],
    [2, 'second', undefined],
    [3, 'third', undefined],
  ])
  await answered('three', 'better', { replaces: { after: 2 } })
  await answered('one, edited', 'anew', { replaces: { after: 0 } })
  await answered('one, edited', 'once more', { replaces: { after: 0 } })
  await answered('two', 'then')
  const latest = [
    [6, 'once more', [1, 5, 6]],
    [7, 'then', undefined],
  ]
  expect(await versions()).toEqual(latest)
  expect(await versions(7)).toEqual(latest)
  expect(await versions(5)).toEqual([[5, 'anew', [1, 5, 6]]])
  const before = [
    [1, 'first', [1, 5, 6]],
    [2, 'second', undefined],
    [4, 'better', [3, 4]],
  ]
  expect(await versions(1)).toEqual(before)
  expect(await versions(4)).toEqual(before)
  expect(await versions(3)).toEqual([
    [1, 'first', [1, 5, 6]],
    [2, 'second', undefined],
    [3, 'third', [3, 4]],
  ])
  await expect(versions(8)).rejects.toMatchObject({ status: 404 })
  // What was said is that of the latest ones, for the next question and for every list.
  expect((await messagesOf(id)).map(({ content }) => textOf(content))).toEqual([
    'one, edited',
    'once more',
    'two',
    'then',
  ])
  const [row] = await rowsOf('SELECT turns FROM conversations WHERE id = ?', id)
  expect(row).toEqual({ turns: 2 })
})

it('go with the turn that replaced them, also theirs', async () => {
  await answered('one', 'first')
  await answered('one', 'second', { replaces: {} })
  await answered('one', 'third', { replaces: {} })
  await answered('two', 'other')
  await deleteTurn(env.DB, id, 3)
  expect(await rowsOf('SELECT turn FROM turns WHERE conversation_id = ?', id)).toEqual([{ turn: 4 }])
})

it('are kept though D1 learns of all of them at once', async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {})
  await withoutTables(['turns', 'messages'], async () => {
    await answered('one', 'first')
    await answered('one', 'better', { replaces: {} })
  })
  await runDurableObjectAlarm(stub(id))
  await expect.poll(() => versions()).toEqual([[2, 'better', [1, 2]]])
  expect(await versions(1)).toEqual([[1, 'first', [1, 2]]])
})
