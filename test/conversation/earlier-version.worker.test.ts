/** Conversations of the version before, which knew of nobody who is proven to ask: they open to whom they should. */
import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, expect, it } from 'vitest'
import { getConversation, listConversations } from '../../src/conversation/conversations'
import { readMeta, writeMeta } from '../../src/conversation/turn-log'
import { insertApiKey } from '../../src/db/api-keys'
import type { Asker } from '../../src/turn/request'
import { ADMIN, asking, conversation, read, rowsOf, setStage, stub, take } from './stage'

beforeAll(() => setStage())

/** A conversation as an object of the version before holds it. */
async function begun(owner: string, userId: string): Promise<string> {
  const { conversationId, ...request } = await asking('Who directed Alien?', { asker: { owner, userId } })
  await take({ conversationId, ...request })
  await runInDurableObject(stub(conversationId), (_, { storage: { sql } }) => {
    const { found_until: _until, ...self } = readMeta(sql, 'self')!
    writeMeta(sql, 'self', { ...self, owner: { owner, userId } })
  })
  await abortAllDurableObjects()
  return conversationId
}

const opens = async (id: string, asker: Asker): Promise<boolean> => {
  const readable = await getConversation(env, asker, id).then(
    () => true,
    () => false,
  )
  const { ok } = await conversation(id).stop(asker)
  expect(ok).toBe(readable)
  expect(await conversation(id).isOpenTo(asker)).toBe(readable)
  return readable
}

it('a conversation with a claimed user is open to who has its id, its key and names that user', async () => {
  const id = await begun('21', 'ann')
  expect(await opens(id, { owner: '21', userId: 'ann' })).toBe(true)
  expect(await opens(id, { owner: '21', userId: 'ann', proofs: ['user:ann'] })).toBe(true)
  expect(await opens(id, ADMIN)).toBe(true)
  expect(await opens(id, { owner: '21', userId: 'bob' })).toBe(false)
  expect(await opens(id, { owner: '21', userId: '' })).toBe(false)
  expect(await opens(id, { owner: '22', userId: 'ann', proofs: ['user:ann'] })).toBe(false)
  const proven: Asker = { owner: '21', userId: 'ann', proofs: ['user:ann'] }
  expect((await listConversations(env, proven, { limit: 9 })).conversations).toEqual([])
  const follow = await asking('And who is in it?', { conversationId: id, continues: true, asker: proven })
  expect((await take(follow)).at(-1)).toMatchObject({ type: 'done', turn: 2 })
})

it('one of nobody in particular is open to who has its id and its key', async () => {
  const id = await begun('23', '')
  expect(await opens(id, { owner: '23', userId: '' })).toBe(true)
  expect(await opens(id, { owner: '23', userId: '', proofs: ['visitor:any'] })).toBe(true)
  expect(await opens(id, { owner: '24', userId: '' })).toBe(false)
})

it('of a key that fixed its user, the migration knows whose they are', async () => {
  const db = env.DB
  const key = await insertApiKey(db, {
    prefix: 'abcd',
    hash: crypto.randomUUID(),
    sealedValue: null,
    description: '',
    actions: ['documents:search'],
    collections: ['*'],
    expiresAt: 64_723_363_199,
    autodelete: false,
    limits: { user_id: 'eve' },
  })
  const owner = String(key!.id)
  const [fixed, claimed] = [await begun(owner, 'eve'), await begun('25', 'eve')]
  // As it was before the migration.
  await env.DB.exec('DROP INDEX conversations_proof_created')
  await env.DB.exec('DROP INDEX conversations_proof')
  await env.DB.exec('DROP INDEX conversations_owner')
  await env.DB.exec('ALTER TABLE conversations DROP COLUMN proof')
  await env.DB.exec('CREATE INDEX conversations_owner ON conversations (owner, user_id, updated_at)')
  const migration = env.TEST_MIGRATIONS.find(({ name }) => name.startsWith('0004'))!
  for (const query of migration.queries) await env.DB.prepare(query).run()

  const proofs = await rowsOf('SELECT id, proof FROM conversations WHERE id IN (?, ?)', fixed, claimed)
  expect(new Map(proofs.map(({ id, proof }) => [id, proof]))).toEqual(
    new Map([
      [fixed, 'user:eve'],
      [claimed, ''],
    ]),
  )
  const eve: Asker = { owner, userId: 'eve', proofs: ['user:eve'] }
  const listed = async () =>
    (await listConversations(env, eve, { limit: 9 })).conversations.map(({ id }) => id)
  expect(await listed()).toEqual([fixed])
  // Its object still knows nothing of it, and tells D1 so with its next turn.
  const follow = await asking('And who is in it?', { conversationId: fixed, continues: true, asker: eve })
  const asked = await conversation(fixed).ask(follow)
  if (asked.ok && 'events' in asked.value) await read(asked.value.events)
  expect(await listed()).toEqual([fixed])
})
