/** A search of a collection in a Typesense cluster is answered with the cluster's own text: a double would not hold its scores. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { disconnect, KEY, query, request, unique, url } from './harness'
import { Relay } from './relay'

const REMOTE = 'there'
const SCORE = '578730123365711993'
const cluster = new Relay(url)
const name = unique('digits')

beforeAll(async () => {
  await cluster.open()
  cluster.replies[`/collections/${REMOTE}`] = { name: REMOTE, num_documents: 1, created_at: 0, fields: [] }
  const engine = {
    type: 'typesense',
    nodes: [cluster.url],
    credentials: { api_key: KEY },
    collection: REMOTE,
  }
  const made = await request('POST', '/collections', { name, engine })
  if (made.status !== 201) throw new Error(made.text)
})

afterAll(async () => {
  await disconnect([name])
  await cluster.close()
})

/** What a search of one document is answered with. */
function replying(document: object): void {
  const hits = [{ document, highlight: {}, text_match: JSON.rawJSON(SCORE) }]
  const request_params = { collection_name: REMOTE, q: 'a' }
  cluster.replies['/multi_search'] = { results: [{ found: 1, hits, request_params, search_time_ms: 0 }] }
}

const asked = { q: 'a', query_by: 'title' }

test('scores keep their digits, under the name here', async () => {
  replying({ id: '1', title: 'a' })
  const both = [
    await request('GET', query(`/collections/${name}/documents/search`, asked)),
    await request('POST', '/multi_search', { searches: [{ collection: name, ...asked }] }),
  ]
  for (const { text, body } of both) {
    expect(text).toContain(`"text_match":${SCORE}}`)
    expect((body.results?.[0] ?? body).request_params).toEqual({ collection_name: name, q: 'a' })
    expect(text).not.toContain(`"${REMOTE}"`)
  }
})

test('a document that looks like a reply stays as it is', async () => {
  const document = { id: '1', request_params: { collection_name: REMOTE }, text: ']}{"request_params":{' }
  replying(document)
  const { body } = await request('POST', '/multi_search', {
    searches: [
      { collection: name, ...asked },
      { collection: name, ...asked },
    ],
  })
  for (const { hits, request_params } of body.results) {
    expect(hits[0].document).toEqual(document)
    expect(request_params.collection_name).toBe(name)
  }
})
