/** What is left of a conversation, wherever it could be. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect } from 'vitest'
import { getConversation } from '../../src/conversation/conversations'
import { ADMIN, collectionNamed, conversation, rowsOf, stub } from './stage'

export const NOT_FOUND = { code: 'unknown_conversation', status: 404, message: 'Conversation not found' }

/** Everything in D1 that mentions a text, by table. */
export async function inD1(text: string): Promise<string[]> {
  const found: string[] = []
  const tables = await rowsOf(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\'",
  )
  for (const { name } of tables) {
    const rows = await rowsOf(`SELECT * FROM "${name}"`)
    if (rows.some((row) => JSON.stringify(row).includes(text))) found.push(String(name))
  }
  return found
}

/** Everything in an object's tables that mentions a text; undefined: any row at all. */
export const inObject = (object: DurableObjectStub, text?: string): Promise<string[]> =>
  runInDurableObject(object, (_, { storage: { sql } }) =>
    sql
      .exec<{ name: string }>(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\'",
      )
      .toArray()
      .map(({ name }) => name)
      .filter((name) => !/^(text|word)_index|fts/.test(name))
      .filter((name) =>
        sql
          .exec(`SELECT * FROM "${name}"`)
          .toArray()
          .some((row) => text === undefined || JSON.stringify(row).includes(text)),
      ),
  )

export const history = async (name = 'talk') =>
  env.COLLECTION.get(env.COLLECTION.idFromName((await collectionNamed(name)).objectId))

/** Sees that there is nothing of a conversation anywhere. @param name of its history collection */
export async function expectNothingLeft(id: string, name = 'talk'): Promise<void> {
  expect(await inD1(id)).toEqual([])
  expect(await inObject(stub(id))).toEqual([])
  expect(await runInDurableObject(stub(id), (_, { storage }) => storage.getAlarm())).toBeNull()
  expect(await inObject(await history(name), id)).toEqual([])
  expect(await conversation(id).events(ADMIN)).toEqual({ ok: false, error: NOT_FOUND })
  await expect(getConversation(env, ADMIN, id)).rejects.toMatchObject(NOT_FOUND)
}
