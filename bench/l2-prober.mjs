import { request } from 'node:http'
let seen = { health: [], search: [] }
const get = (url) => new Promise((res, rej) => { const r = request(url, { headers: { 'x-typesense-api-key': 'xyz' } }, (a) => { a.resume(); a.on('end', res) }); r.on('error', rej); r.end() })
async function watch(name, url) { for (;;) { const s = Date.now(); await get(url).catch(() => {}); seen[name].push([s, Date.now() - s]); await new Promise((r) => setTimeout(r, 20)) } }
process.on('message', (m) => { if (m === 'report') { process.send(seen); seen = { health: [], search: [] } } else { watch('health', m.health); watch('search', m.search) } })
