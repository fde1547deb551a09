/** What the length of a conversation costs: time to the first token of turn 500 against that of turn 2. */
import { HISTORY_FIELDS, makeDocument, SCHEMA } from './documents.mjs'
import { median, report } from './report.mjs'
import { call } from './server.mjs'
import { startUpstream } from './stream.mjs'

const ROUNDS = 15
const TURNS = 500
/** characters of a message: an answer of some paragraphs */
const LENGTH = 1_200

async function firstToken(server, conversationId) {
  const query = new URLSearchParams({
    q: makeDocument(5).title,
    query_by: 'title,text',
    conversation: 'true',
    conversation_model_id: 'long',
    conversation_id: conversationId,
    conversation_stream: 'true',
    exclude_fields: 'conversation_history',
  })
  const started = performance.now()
  const response = await fetch(`${server.url}/collections/long/documents/search?${query}`, {
    headers: { 'x-typesense-api-key': 'xyz' },
  })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  let first
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    if (first === undefined && text.includes('word0')) first = performance.now() - started
  }
  if (first === undefined) throw new Error('the stream held no answer')
  return first
}

/** Imports a conversation of so many turns. */
async function converse(server, id, turns) {
  const now = Math.floor(Date.now() / 1000) - 10_000
  const lines = Array.from({ length: 2 * turns }, (_, n) =>
    JSON.stringify({
      conversation_id: id,
      model_id: 'long',
      role: n % 2 ? 'assistant' : 'user',
      message: `${n} ${'lorem ipsum '.repeat(LENGTH / 12)}`,
      timestamp: now + n,
    }),
  )
  await call(server, '/collections/long_history/documents/import', { method: 'POST', body: lines.join('\n') })
}

export async function benchHistory(server) {
  const upstream = await startUpstream()
  try {
    await call(server, '/collections', {
      method: 'POST',
      body: JSON.stringify({ name: 'long', ...SCHEMA }),
    })
    await call(server, '/collections/long/documents/import', {
      method: 'POST',
      body: Array.from({ length: 100 }, (_, n) => JSON.stringify(makeDocument(n))).join('\n'),
    })
    await call(server, '/collections', {
      method: 'POST',
      body: JSON.stringify({
        name: 'long_history',
        fields: HISTORY_FIELDS,
      }),
    })
    await call(server, '/conversations/models', {
      method: 'POST',
      body: JSON.stringify({
        id: 'long',
        model_name: 'openai/bench',
        history_collection: 'long_history',
        api_key: 'sk-benchmark',
        openai_url: upstream.url,
        openai_path: '/v1/chat/completions?chunks=5',
        max_bytes: 8192,
      }),
    })
    const times = { short: [], long: [] }
    // Each conversation is asked for the first time, by turns, so that what an object costs when it is new, and
    // what else goes on here, falls on both.
    for (let round = 0; round < ROUNDS; round++) {
      await converse(server, `short-${round}`, 1)
      await converse(server, `long-${round}`, TURNS - 1)
      times.short.push(await firstToken(server, `short-${round}`))
      times.long.push(await firstToken(server, `long-${round}`))
    }
    const [short, long] = [median(times.short.slice(3)), median(times.long.slice(3))]
    report({
      what: `time to the first token of turn ${TURNS}, against that of turn 2`,
      parley: `${long.toFixed(1)} ms`,
      baseline: `${short.toFixed(1)} ms`,
      ratio: long / short,
      aim: 1.2,
      better: 'lower',
    })
  } finally {
    upstream.stop()
  }
}
