/** A sweep of 1,000,000 expired messages while conversations go on: what it adds to their answers, and how long it takes. */
import { HISTORY_FIELDS, makeDocument, SCHEMA } from './documents.mjs'
import { percentile, report } from './report.mjs'
import { call } from './server.mjs'
import { startUpstream } from './stream.mjs'

const ROWS = Number(process.env.BENCH_SWEEP ?? 1_000_000)
const ROWS_A_STATEMENT = 20_000
const IDLE_ASKS = 300
/** milliseconds from an answer to the next question */
const PAUSE = 20
/** A client gives up after this long, in milliseconds. */
const TIMEOUT = 5_000

/** Messages of ten a conversation, a year old. */
async function insertExpired(db, historyId, modelId) {
  const old = Math.floor(Date.now() / 1000) - 365 * 86_400
  for (let from = 0; from < ROWS; from += ROWS_A_STATEMENT) {
    const to = Math.min(ROWS, from + ROWS_A_STATEMENT)
    await db
      .prepare(
        `WITH RECURSIVE n(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?2)
        INSERT INTO messages (history_id, document_id, conversation_id, model_id, role, message, timestamp)
        SELECT ?3, 'old-' || i, 'old-' || (i / 10), ?4, iif(i % 2, 'assistant', 'user'),
          'What was said a year ago, number ' || i || '. ' || hex(randomblob(60)), ?5 + i / 100 FROM n`,
      )
      .bind(from, to, historyId, modelId, old)
      .run()
  }
}

/** Asks once. @returns milliseconds to the whole answer @throws when the client would have given up */
async function ask(server) {
  const query = new URLSearchParams({
    q: makeDocument(5).title,
    query_by: 'title,text',
    conversation: 'true',
    conversation_model_id: 'chats',
    exclude_fields: 'conversation_history',
  })
  const started = performance.now()
  await call(server, `/collections/swept/documents/search?${query}`, { signal: AbortSignal.timeout(TIMEOUT) })
  await new Promise((resolve) => setTimeout(resolve, PAUSE))
  return performance.now() - started - PAUSE
}

export async function benchSweep(server) {
  const upstream = await startUpstream()
  const post = (to, body) => call(server, to, { method: 'POST', body: JSON.stringify(body) })
  try {
    await post('/collections', { name: 'swept', ...SCHEMA })
    const documents = Array.from({ length: 1000 }, (_, n) => JSON.stringify(makeDocument(n)))
    await call(server, '/collections/swept/documents/import', { method: 'POST', body: documents.join('\n') })
    await post('/collections', { name: 'swept_history', fields: HISTORY_FIELDS })
    for (const id of ['chats', 'expired']) {
      await post('/conversations/models', {
        id,
        model_name: 'openai/bench',
        history_collection: 'swept_history',
        api_key: 'sk-benchmark',
        openai_url: upstream.url,
        openai_path: '/v1/chat/completions?chunks=5',
        max_bytes: 8192,
      })
    }
    const { object_id: historyId } = await server.db
      .prepare("SELECT object_id FROM collections WHERE name = 'swept_history'")
      .first()
    /** Expired messages that are left, counted up to so many. */
    const left = async (most) => {
      const { n } = await server.db
        .prepare("SELECT count(*) AS n FROM (SELECT 1 FROM messages WHERE model_id = 'expired' LIMIT ?)")
        .bind(most)
        .first()
      return n
    }
    const inserting = performance.now()
    await insertExpired(server.db, historyId, 'expired')
    if ((await left(ROWS + 1)) !== ROWS) throw new Error('the rows were not inserted')
    console.log(
      `  (${ROWS.toLocaleString('en')} rows inserted in ${((performance.now() - inserting) / 1000).toFixed(0)} s)`,
    )

    for (let n = 0; n < 30; n++) await ask(server)
    const idle = []
    for (let n = 0; n < IDLE_ASKS; n++) idle.push(await ask(server))

    let sweeping = true
    const sweeps = []
    const sweep = async () => {
      try {
        while ((await left(1)) > 0) {
          const started = performance.now()
          await server.cron()
          sweeps.push(performance.now() - started)
        }
      } finally {
        sweeping = false
      }
    }
    const swept = sweep()
    const busy = []
    while (sweeping) busy.push(await ask(server))
    await swept
    const seconds = sweeps.reduce((sum, milliseconds) => sum + milliseconds, 0) / 1000
    const told = (times) =>
      `p50 ${percentile(times, 50).toFixed(1)} ms, p95 ${percentile(times, 95).toFixed(1)} ms, longest ${Math.max(...times).toFixed(0)} ms`
    console.log(
      `  (sweep of ${ROWS.toLocaleString('en')} messages: ${seconds.toFixed(0)} s in ${sweeps.length} runs of at most ` +
        `${(Math.max(...sweeps) / 1000).toFixed(1)} s, ${Math.round(ROWS / seconds).toLocaleString('en')} rows a second;\n` +
        `   answers idle: ${told(idle)}; during the sweep, ${busy.length} of them: ${told(busy)}; none timed out)`,
    )
    for (const p of [50, 95]) {
      const [before, during] = [percentile(idle, p), percentile(busy, p)]
      report({
        what: `p${p} of answers during a sweep of ${ROWS.toLocaleString('en')} messages against idle (adds ${(during - before).toFixed(1)} ms)`,
        parley: `${during.toFixed(1)} ms`,
        baseline: `${before.toFixed(1)} ms`,
        ratio: during / before,
        aim: 3,
        better: 'lower',
      })
    }
  } finally {
    upstream.stop()
  }
}
