/** Fills an index of a cluster with lighthouses (lighthouses.mjs). */
import { lighthouse } from './lighthouses.mjs'

export const INDEX = 'lighthouses'
const AT_ONCE = 5_000

/**
 * One request to a node.
 * @param {string} url @param {string} method @param {string} path @param {unknown} [body] JSON, or text as it is
 * @returns {Promise<any>}
 */
export async function askNode(url, method, path, body) {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const response = await fetch(url + path, {
    method,
    headers: { 'content-type': typeof body === 'string' ? 'application/x-ndjson' : 'application/json' },
    ...(text !== undefined && { body: text }),
  })
  const reply = await response.json()
  if (!response.ok)
    throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(reply).slice(0, 500)}`)
  return reply
}

/** Makes the index with this many documents: three primaries, and a copy of each. @param {string} url @param {number} count */
export async function fill(url, count) {
  const index = {
    // Copies are made once at the end, which costs less than indexing every document twice.
    settings: { number_of_shards: 3, number_of_replicas: 0, refresh_interval: '-1' },
    mappings: {
      properties: { title: { type: 'text' }, text: { type: 'text' }, region: { type: 'integer' } },
    },
  }
  await askNode(url, 'PUT', `/${INDEX}`, index)
  for (let from = 0; from < count; from += AT_ONCE) {
    let body = ''
    for (let number = from; number < Math.min(count, from + AT_ONCE); number++) {
      body += `{"index":{"_id":"${number}"}}\n${JSON.stringify(lighthouse(number))}\n`
    }
    const { errors } = await askNode(url, 'POST', `/${INDEX}/_bulk`, body)
    if (errors) throw new Error(`The cluster refused documents from ${from} on.`)
    if (from % 100_000 === 0) console.log(`${from} of ${count} documents are there`)
  }
  await askNode(url, 'PUT', `/${INDEX}/_settings`, { number_of_replicas: 1, refresh_interval: '1s' })
  await whole(url)
}

/** Waits until every shard has its copy. @param {string} url */
export async function whole(url) {
  const until = Date.now() + 600_000
  while (Date.now() < until) {
    const { status } = await askNode(url, 'GET', '/_cluster/health?wait_for_status=green&timeout=20s').catch(
      () => ({ status: '' }),
    )
    if (status === 'green') return
  }
  throw new Error('The cluster did not get well.')
}
