/** 500 conversations streaming at once: the gaps between their chunks and the memory, against a bare relay. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { HISTORY_FIELDS, makeDocument, SCHEMA } from './documents.mjs'
import { call } from './server.mjs'

const STREAMS = 500
/** milliseconds between chunks */
const GAP = 500
/** milliseconds from one start to the next: each is a search and a new conversation, some 25 ms of CPU */
const RAMP = 60
/** The first stream goes on for half as long again as the last one takes to start. */
const CHUNKS = Math.ceil((1.5 * STREAMS * RAMP) / GAP)

const start = (file) => fork(join(import.meta.dirname, file))

/** Reads all streams at once, watching the memory. @returns what readers.mjs saw, and the highest memory in MiB */
async function watch(server, readers, stream) {
  let peak = 0
  const watching = setInterval(() => {
    peak = Math.max(peak, server.memory())
  }, 250)
  readers.send({ count: STREAMS, ramp: RAMP, ...stream })
  const [seen] = await once(readers, 'message')
  clearInterval(watching)
  if (seen.errors > 0) throw new Error(`${seen.errors} of ${STREAMS} streams failed: ${seen.error}`)
  return { ...seen, peak }
}

const told = (name, { gap50, gap99, first50, first99, peak }) =>
  console.log(
    `  ${name}: gaps p50 ${gap50.toFixed(1)} ms, p99 ${gap99.toFixed(1)} ms; ` +
      `first piece p50 ${first50.toFixed(0)} ms, p99 ${first99.toFixed(0)} ms; workerd at most ${peak.toFixed(0)} MiB`,
  )

export async function benchLoad(server) {
  const upstream = start('upstream.mjs')
  const readers = start('readers.mjs')
  try {
    const [port] = await once(upstream, 'message')
    const url = `http://127.0.0.1:${port}`
    const path = `/v1/chat/completions?chunks=${CHUNKS}&gap=${GAP}`
    const post = (to, body) => call(server, to, { method: 'POST', body })
    await post('/collections', JSON.stringify({ name: 'load', ...SCHEMA }))
    const documents = Array.from({ length: 1000 }, (_, n) => JSON.stringify(makeDocument(n)))
    await post('/collections/load/documents/import', documents.join('\n'))
    await post('/collections', JSON.stringify({ name: 'load_history', fields: HISTORY_FIELDS }))
    const model = { id: 'load', model_name: 'openai/bench', history_collection: 'load_history' }
    const provider = { api_key: 'sk-benchmark', openai_url: url, openai_path: path, max_bytes: 8192 }
    await post('/conversations/models', JSON.stringify({ ...model, ...provider }))

    const idle = server.memory()
    const marker = 'word'
    const relayed = await watch(server, readers, {
      url: `${server.url}/__bench/relay?url=${encodeURIComponent(url + path)}`,
      marker,
      end: '[DONE]',
    })
    const asked = await watch(server, readers, {
      url: `${server.url}/conversations`,
      method: 'POST',
      headers: { 'x-typesense-api-key': 'xyz', accept: 'text/event-stream' },
      // Each asks something else. A question that is being asked gets a copy of that answer.
      bodies: Array.from({ length: STREAMS }, (_, n) =>
        JSON.stringify({
          question: makeDocument(n).title,
          model: 'load',
          searches: [{ collection: 'load', query_by: 'title,text' }],
        }),
      ),
      marker: 'event: delta',
      end: 'event: done',
    })
    console.log(
      `${STREAMS} streams at once, ${GAP} ms between chunks: ${asked.whole} whole, ${asked.errors} errors`,
    )
    told('parley', asked)
    told('relay', relayed)
    console.log(`  workerd before: ${idle.toFixed(0)} MiB`)
    const ratio = (name) => (asked[name] / relayed[name]).toFixed(2)
    console.log(
      `  parley against relay: p50 ${ratio('gap50')}, p99 ${ratio('gap99')}, memory ${ratio('peak')}`,
    )
  } finally {
    upstream.kill()
    readers.kill()
  }
}
