/** What a page of ten memories, or ten messages, costs among 100,000 of them against among 100. */
import { median, report } from './report.mjs'
import { call } from './server.mjs'

const FEW = 100
const MANY = Number(process.env.BENCH_LISTINGS ?? 100_000)
const ROUNDS = 200
const WARM_UP = 20
const ROWS_A_STATEMENT = 20_000

const MEMORY = '/_plugins/_ml/memory'

/** Rows with the numbers from 0 to `many`, some of them a statement. */
async function insert(db, many, table, columns, values, ...bound) {
  for (let from = 0; from < many; from += ROWS_A_STATEMENT) {
    await db
      .prepare(
        `WITH RECURSIVE n(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?2)
        INSERT INTO ${table} (${columns}) SELECT ${values} FROM n`,
      )
      .bind(from, Math.min(many, from + ROWS_A_STATEMENT), ...bound)
      .run()
  }
}

const insertMemories = (db, owner, userId, many) =>
  insert(
    db,
    many,
    'conversations',
    'id, history_id, model_id, owner, user_id, proof, protocol, title, details, turns, created_at, updated_at, expires_at',
    `'listed-' || ?3 || '-' || i, 'h', 'opensearch', ?3, ?4, iif(?4 = '', '', 'user:' || ?4), 'opensearch', 'A memory',
      json_object('name', 'A memory, number ' || i), 1, ?5 + i, ?5 + i, ?5 + 86400000`,
    owner,
    userId,
    Date.now(),
  )

const insertMessages = (db, id, many) =>
  insert(
    db,
    many,
    'turns',
    'conversation_id, turn, question, answer, finish_reason, citations, usage, timings, trace, created_at, expires_at',
    `?3, i + 1, 'What is number ' || i || '?', 'It is ' || hex(randomblob(200)), 'stop', '[]', '{}', '{}', '{}', ?4 + i, ?4 + 86400000`,
    id,
    Date.now(),
  )

/** Makes a key with a memory in which to look. @returns how it asks */
async function makeOwner(server, { many, limits }) {
  const reply = await call(server, '/keys', {
    method: 'POST',
    body: JSON.stringify({
      description: `${many}`,
      actions: ['conversations:*'],
      collections: ['*'],
      ...(limits && { limits }),
    }),
  })
  const { id, value } = JSON.parse(reply)
  await insertMemories(server.db, String(id), limits?.user_id ?? '', many)
  return (path) => call(server, path, { headers: { 'x-typesense-api-key': value } })
}

async function makeMemory(server, many) {
  const id = JSON.parse(await call(server, MEMORY, { method: 'POST' })).memory_id
  await insertMessages(server.db, id, many)
  return id
}

/** Milliseconds of two requests that take turns, so that what else goes on here falls on both. */
async function compare(first, second) {
  const times = [[], []]
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    for (const [at, ask] of [first, second].entries()) {
      const started = performance.now()
      const text = await ask()
      const items = Object.values(JSON.parse(text)).find(Array.isArray)
      if (items.length !== 10) throw new Error(`ten were asked for: ${text.slice(0, 200)}`)
      if (round >= 0) times[at].push(performance.now() - started)
    }
  }
  return times.map(median)
}

const told = (milliseconds) => `${milliseconds.toFixed(2)} ms`

export async function benchListings(server) {
  const admin = (path) => call(server, path)
  const [few, many] = [await makeOwner(server, { many: FEW }), await makeOwner(server, { many: MANY })]
  const ann = await makeOwner(server, { many: FEW, limits: { user_id: 'ann' } })
  const bob = await makeOwner(server, { many: MANY, limits: { user_id: 'bob' } })
  const [short, long] = [await makeMemory(server, FEW), await makeMemory(server, MANY)]
  const lists = [
    ["a key's memories, first generation", `${MEMORY}/conversation?max_results=10`, few, many],
    ["a key's memories, second generation", `${MEMORY}?max_results=10`, few, many],
    ["a key's conversations, Parley's own route", '/conversations?limit=10', few, many],
    ["a user's memories, first generation", `${MEMORY}/conversation?max_results=10`, ann, bob],
    ["a user's memories, second generation", `${MEMORY}?max_results=10`, ann, bob],
    ['interactions of a memory, newest first', (id) => `${MEMORY}/conversation/${id}?max_results=10`],
    ['messages of a memory, oldest first', (id) => `${MEMORY}/${id}/messages?max_results=10`],
  ]
  for (const [what, path, small, large] of lists) {
    const asks = small
      ? [() => small(path), () => large(path)]
      : [() => admin(path(short)), () => admin(path(long))]
    const [baseline, parley] = await compare(...asks)
    report({
      what: `10 of ${MANY.toLocaleString('en')} against 10 of ${FEW}: ${what}`,
      parley: told(parley),
      baseline: told(baseline),
      ratio: parley / baseline,
      aim: 1.3,
      better: 'lower',
    })
  }
}
