/** What Parley adds to a streamed answer: time to the first token, and CPU a chunk against copying bytes. */
import { fork } from 'node:child_process'
import { join } from 'node:path'
import { HISTORY_FIELDS, makeDocument, SCHEMA } from './documents.mjs'
import { median, report } from './report.mjs'
import { call } from './server.mjs'

export const CHUNKS = 2000
/** milliseconds between chunks: 0.25 is a very fast model, 5 a usual one (200 tokens a second) */
const PACES = [0.25, 5]

export async function startUpstream() {
  const child = fork(join(import.meta.dirname, 'upstream.mjs'))
  const port = await new Promise((resolve) => child.once('message', resolve))
  return { url: `http://127.0.0.1:${port}`, stop: () => child.kill() }
}

/** Reads a stream to its end. @returns milliseconds to the first text, and to the end */
export async function read(url, init, marker) {
  const started = performance.now()
  const response = await fetch(url, init)
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`)
  let first
  let text = ''
  for await (const bytes of response.body.pipeThrough(new TextDecoderStream())) {
    if (first === undefined && bytes.includes(marker)) first = performance.now() - started
    text += bytes
  }
  if (!text.includes(`word${CHUNKS - 1}`)) throw new Error(`${url}: the stream is not whole`)
  return { first, total: performance.now() - started }
}

/** @returns microseconds of CPU a chunk, and milliseconds to the first text */
export async function measure(server, rounds, once) {
  await once()
  const runs = []
  const before = server.cpu()
  for (let i = 0; i < rounds; i++) runs.push(await once())
  return {
    cpu: ((server.cpu() - before) / rounds / CHUNKS) * 1e6,
    first: median(runs.map((run) => run.first)),
  }
}

export async function benchStream(server) {
  const upstream = await startUpstream()
  try {
    const name = 'stream'
    await call(server, '/collections', { method: 'POST', body: JSON.stringify({ name, ...SCHEMA }) })
    const documents = Array.from({ length: 1000 }, (_, n) => JSON.stringify(makeDocument(n)))
    await call(server, `/collections/${name}/documents/import`, {
      method: 'POST',
      body: documents.join('\n'),
    })
    await call(server, '/collections', {
      method: 'POST',
      body: JSON.stringify({
        name: 'history',
        fields: HISTORY_FIELDS,
      }),
    })
    for (const gap of PACES) {
      const path = `/v1/chat/completions?chunks=${CHUNKS}&gap=${gap}&wait=50`
      const id = `paced-${gap}`
      await call(server, '/conversations/models', {
        method: 'POST',
        body: JSON.stringify({
          id,
          model_name: 'openai/bench',
          history_collection: 'history',
          api_key: 'sk-benchmark',
          openai_url: upstream.url,
          openai_path: path,
          max_bytes: 8192,
        }),
      })
      const rounds = gap < 1 ? 12 : 3
      const copied = await measure(server, rounds, () =>
        read(`${server.url}/__bench/relay?url=${encodeURIComponent(upstream.url + path)}`, {}, 'word0'),
      )
      // Each round asks something else. A question that was just asked gets a copy of that answer.
      let round = 0
      const query = () =>
        new URLSearchParams({
          q: makeDocument(round++).title,
          query_by: 'title,text',
          conversation: 'true',
          conversation_model_id: id,
          conversation_stream: 'true',
        })
      const asked = await measure(server, rounds, () =>
        read(
          `${server.url}/collections/${name}/documents/search?${query()}`,
          { headers: { 'x-typesense-api-key': 'xyz' } },
          'word0',
        ),
      )
      report({
        what: `CPU a chunk of a streamed answer, ${gap} ms between chunks, against a Worker that copies the bytes`,
        parley: `${asked.cpu.toFixed(0)} µs`,
        baseline: `${copied.cpu.toFixed(0)} µs`,
        ratio: asked.cpu / copied.cpu,
        aim: 1,
        better: 'lower',
      })
      // The model thinks for 50 ms; what is over that, less what the bare relay needs, is Parley's.
      console.log(
        `  time to first token: parley ${asked.first.toFixed(1)} ms, relay ${copied.first.toFixed(1)} ms ` +
          `(both with a model that takes 50 ms): Parley adds ${(asked.first - copied.first).toFixed(1)} ms for search, prompt and log`,
      )
    }
  } finally {
    upstream.stop()
  }
}
