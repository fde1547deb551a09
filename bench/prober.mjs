/**
 * Another client, in a process of its own: how long it waits for `/health`, for a search in another collection, and
 * for the next piece of a stream that runs. A piece follows another after a gap anyhow, which is not counted. It waits for
 * a message `{ health, search, stream, headers }` of URLs and a request, watches from then on, and answers each `'report'`
 * with what it has seen since the last one.
 */
import { request } from 'node:http'

const PAUSE_MS = 20
/** A request without an answer for this long is counted as having taken as long. */
const PATIENCE_MS = 300_000

let seen = { health: [], search: [], stream: [] }
/** since when something has been waited for, by what it is */
const waiting = new Map()

const get = (url, headers) =>
  new Promise((resolve, reject) => {
    const outgoing = request(url, { headers, timeout: PATIENCE_MS }, (response) => {
      response.resume()
      response.on('end', () =>
        response.statusCode === 200 ? resolve() : reject(new Error(`${response.statusCode}`)),
      )
      response.on('error', reject)
    })
    outgoing.on('error', reject)
    outgoing.on('timeout', () => outgoing.destroy(new Error('no answer')))
    outgoing.end()
  })

async function watch(name, url, headers) {
  for (;;) {
    const started = performance.now()
    waiting.set(name, started)
    await get(url, headers).catch((error) => process.send({ failed: `${name}: ${error.message}` }))
    seen[name].push(performance.now() - started)
    waiting.delete(name)
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
}

function follow({ url, body, marker, gap }, headers) {
  const outgoing = request(url, { method: 'POST', headers }, (response) => {
    response.setEncoding('latin1')
    waiting.set('stream', performance.now())
    response.on('data', (text) => {
      if (!text.includes(marker)) return
      const now = performance.now()
      seen.stream.push(Math.max(0, now - waiting.get('stream') - gap))
      waiting.set('stream', now)
    })
    response.on('end', () => {
      waiting.delete('stream')
      process.send({ failed: 'stream: it has ended' })
    })
  })
  outgoing.on('error', (error) => process.send({ failed: `stream: ${error.message}` }))
  outgoing.end(body)
}

process.on('message', (message) => {
  if (message === 'report') {
    // What is still waited for has taken this long at least.
    for (const [name, since] of waiting) seen[name].push(performance.now() - since)
    process.send({ seen })
    seen = { health: [], search: [], stream: [] }
    return
  }
  const { health, search, stream, headers } = message
  watch('health', health, headers)
  watch('search', search, headers)
  follow(stream, { ...headers, accept: 'text/event-stream', 'content-type': 'application/json' })
})
