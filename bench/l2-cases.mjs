const headers = { 'x-typesense-api-key': 'xyz', 'content-type': 'application/json' }
const req = (name, path, method, body) => ({ name, send: async (server, signal) => { const r = await fetch(server.url + path, { method, headers, body: typeof body === 'function' ? body() : body, signal }); return { status: r.status, text: await r.text() } } })
const list = (n, of) => Array.from({ length: n }, (_, i) => of(i))
const scattered = (n) => `u${(n * 104_729) % 1_000_003}`
export default [
  req('x pinned 1000', '/multi_search', 'POST', JSON.stringify({ searches: [{ collection: 'filtered', q: '*', filter_by: `uid:[${list(20000, scattered).join(',')}] || points:>5`, filter_curated_hits: true, pinned_hits: list(1000, (n) => `f-${n * 49}:${n + 1}`).join(',') }] })),
  req('x msearch terms', '/filtered/_msearch', 'POST', list(10, (n) => `{}\n${JSON.stringify({ query: { terms: { uid: list(60000, (m) => scattered(m + n)) } } })}\n`).join('')),
  req('x export', '/collections/filtered/documents/export', 'GET'),
  req('x export filter', `/collections/filtered/documents/export?filter_by=${encodeURIComponent('body:bake*')}`, 'GET'),
  req('x patch', '/collections/filtered/documents?filter_by=points:<20000', 'PATCH', '{"kind":"kind x"}'),
  req('x delete', '/collections/filtered/documents?filter_by=points:<30000', 'DELETE'),
]
