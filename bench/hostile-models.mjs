/**
 * What others have of the server while a model, or a crowd of readers, does its worst: `/health`, a search in another
 * collection, and the gaps of a running stream. Each is asked again and again until the hostile turn has ended.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { HISTORY_FIELDS, makeDocument, SCHEMA } from './documents.mjs'
import { percentile } from './report.mjs'
import { call } from './server.mjs'
import { startUpstream } from './stream.mjs'

/** milliseconds that a hostile turn is let go on, where it does not end by itself */
const LONGEST = 20_000
/** milliseconds that nobody may wait */
const AIM = 500
const CROWD = 1_000

const chunk = (delta, finish_reason = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`

const FLOODS = {
  'newlines at full speed': '\n',
  'comments at full speed': ': ping\n\n',
  'a million empty chunks': chunk({ content: '' }),
  'thoughts at full speed': chunk({ reasoning_content: 'hm ' }),
  'plain tokens at full speed': chunk({ content: 'token ' }),
  'streamed white space': chunk({ content: ' ' }),
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** A provider that writes what its model's name says until a million pieces are out, or nobody listens. */
async function startHostile() {
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const bytes of request) body += bytes
    const { model, stream } = JSON.parse(body)
    if (stream !== true) {
      const message = { role: 'assistant', content: 'hello' }
      response.setHeader('content-type', 'application/json')
      return response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }] }))
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(chunk({ content: 'First. ' }))
    const piece = FLOODS[Buffer.from(model, 'hex').toString()]
    if (piece === undefined) return // says nothing more until its caller has gone
    const block = piece.repeat(1_000)
    for (let sent = 0; sent < 1_000 && !response.destroyed; sent++) {
      if (response.write(block)) continue
      await new Promise((resolve) => {
        response.once('drain', resolve)
        response.once('close', resolve)
      })
      response.removeAllListeners('drain').removeAllListeners('close')
    }
    response.end(`${chunk({ content: 'Last.' }, 'stop')}data: [DONE]\n\n`)
  })
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    stop: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

/**
 * Does something again and again until told to stop.
 * @returns how long each time took, in milliseconds; of one that failed until it did
 */
async function again(work, over) {
  const times = []
  while (!over.aborted) {
    const started = performance.now()
    await work().catch((error) => console.log(`  ${error.cause ?? error}`))
    times.push(performance.now() - started)
    await sleep(5)
  }
  return times
}

/** The gaps between the pieces of a paced stream, until told to stop. */
async function gapsOf(response, over) {
  const gaps = []
  let last = performance.now()
  try {
    for await (const _ of response.body) {
      const now = performance.now()
      gaps.push(now - last)
      last = now
    }
  } catch {}
  // What it was waiting for in the end counts too.
  if (over.aborted) gaps.push(performance.now() - last)
  return gaps
}

const told = (what, times) =>
  `${what} p95 ${percentile(times, 95).toFixed(0)} ms, worst ${Math.max(...times).toFixed(0)} ms (${times.length})`

export async function benchHostileModels(server) {
  const [hostile, upstream] = [await startHostile(), await startUpstream()]
  const post = (to, body) => call(server, to, { method: 'POST', body: JSON.stringify(body) })
  const model = (id, model_name, openai_url, more = {}) =>
    post('/conversations/models', {
      id,
      model_name,
      history_collection: 'history',
      api_key: 'sk-benchmark',
      openai_url,
      max_bytes: 8192,
      ...more,
    })
  const conversations = `${server.url}/conversations`
  const asking = { method: 'POST', headers: { 'x-typesense-api-key': 'xyz', accept: 'text/event-stream' } }
  const question = (id) =>
    JSON.stringify({
      question: makeDocument(Math.floor(Math.random() * 200)).title,
      model: id,
      searches: [{ collection: 'asked', query_by: 'title,text' }],
    })
  const ask = (id, signal) => fetch(conversations, { ...asking, body: question(id), signal })
  const search = () => call(server, '/collections/other/documents/search?q=data&query_by=title,text')

  const crowd = fork(join(import.meta.dirname, 'crowd.mjs'))
  const gather = async (url, init, body) => {
    crowd.send({ url, init, bodies: Array.from({ length: CROWD }, body) })
    const [ends] = await Promise.race([once(crowd, 'message'), sleep(LONGEST).then(() => ['not all'])])
    console.log(`${CROWD} were answered with ${JSON.stringify(ends)}; load ${loadavg()[0].toFixed(1)}`)
  }

  /** @param work the hostile thing; the others are watched until it settles */
  const watch = async (name, work) => {
    const over = new AbortController()
    const calm = gapsOf(await ask('calm', over.signal), over.signal)
    const watching = [again(() => call(server, '/health'), over.signal), again(search, over.signal)]
    const started = performance.now()
    await work()
    const took = performance.now() - started
    over.abort()
    const [health, searches] = await Promise.all(watching)
    const gaps = await calm
    const worst = Math.max(...health, ...searches, ...gaps)
    console.log(
      `${name}: over after ${(took / 1000).toFixed(1)} s${worst > AIM ? '   MISSED' : ''}\n` +
        `  ${told('health', health)}; ${told('search', searches)}; ${gaps.length > 0 ? told('gaps', gaps) : 'no gaps'}`,
    )
  }

  try {
    for (const name of ['asked', 'other']) {
      await post('/collections', { name, ...SCHEMA })
      const documents = Array.from({ length: 1_000 }, (_, n) => JSON.stringify(makeDocument(n)))
      await call(server, `/collections/${name}/documents/import`, {
        method: 'POST',
        body: documents.join('\n'),
      })
    }
    await post('/collections', { name: 'history', fields: HISTORY_FIELDS })
    await model('calm', 'openai/bench', upstream.url, {
      openai_path: '/v1/chat/completions?chunks=100000&gap=50',
    })
    await model('crowd', 'openai/00', hostile.url)
    for (const name of Object.keys(FLOODS)) {
      await model(name, `openai/${Buffer.from(name).toString('hex')}`, hostile.url)
    }

    await watch('nothing', () => sleep(3_000))
    for (const name of Object.keys(FLOODS)) {
      await watch(name, async () => {
        const late = AbortSignal.timeout(LONGEST)
        await ask(name, late)
          .then((response) => response.text())
          .catch(() => {})
      })
    }
    // What workerd needs to take so many connections, whatever is asked.
    await watch(`${CROWD} requests for /health at once`, () =>
      gather(`${server.url}/health`, {}, () => undefined),
    )
    for (const when of ['', ', a second time']) {
      await watch(`${CROWD} streams that nobody reads, opened at once${when}`, () =>
        gather(conversations, asking, () => question('crowd')),
      )
      await watch('the same while they are open', () => sleep(5_000))
      crowd.send('leave')
    }
  } finally {
    crowd.kill()
    hostile.stop()
    upstream.stop()
  }
}
