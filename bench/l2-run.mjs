import { fork } from 'node:child_process'
import { once } from 'node:events'
import { loadavg } from 'node:os'
import { cpSync, rmSync } from 'node:fs'
const [what, flag] = process.argv.slice(2)
const KEPT = '/tmp/l2/kept', RUN = '/tmp/l2/storage'
if (what === 'prepare') { process.env.L2_STORAGE = KEPT; process.env.L2_NEW = '1'; rmSync(KEPT, { recursive: true, force: true }) }
else { process.env.L2_STORAGE = RUN; rmSync(RUN, { recursive: true, force: true }); cpSync(KEPT, RUN, { recursive: true }) }
const { startServer, call } = await import('./l2-server.mjs')
const { filterCases, prepareFilters } = await import('./hostile-filters.mjs')
const { makeDocument, SCHEMA } = await import('./documents.mjs')
const sleep = (ms) => new Promise((r) => setTimeout(r, ms))
const server = await startServer()
const extra = (await import('./l2-cases.mjs')).default
try {
  if (what === 'prepare') {
    await prepareFilters(server)
    await call(server, '/collections', { method: 'POST', body: JSON.stringify({ name: 'other', ...SCHEMA }) })
    await call(server, '/collections/other/documents/import', { method: 'POST', body: Array.from({ length: 1000 }, (_, n) => JSON.stringify(makeDocument(n))).join('\n') })
    await sleep(1000)
  } else {
    const prober = fork(new URL('./l2-prober.mjs', import.meta.url).pathname)
    const search = `/collections/other/documents/search?q=${makeDocument(5).title}&query_by=title`.replaceAll(' ', '+')
    await call(server, search); await call(server, '/collections/filtered/documents/search?q=balo&query_by=title')
    prober.send({ health: `${server.url}/health`, search: server.url + search })
    const seen = async () => { prober.send('report'); return (await once(prober, 'message'))[0] }
    let call_, socket, last = 0
    if (flag === 'profile') {
      socket = new WebSocket(await server.inspector('parley'))
      await once(socket, 'open')
      call_ = (method, params = {}) => { const id = ++last; socket.send(JSON.stringify({ id, method, params })); return new Promise((r) => socket.addEventListener('message', ({ data }) => { const m = JSON.parse(data); if (m.id === id) r(m.result ?? m) })) }
      await call_('Profiler.enable'); await call_('Profiler.setSamplingInterval', { interval: 1000 })
    }
    for (const each of [...filterCases, ...extra].filter(({ name }) => what.split('|').some((one) => name.includes(one)))) {
      await sleep(1500); await seen()
      if (call_) await call_('Profiler.start')
      const hang = new AbortController(); const timer = setTimeout(() => hang.abort(), each.patience ?? 15000)
      const started = Date.now(); const cpu = server.cpu()
      const outcome = await each.send(server, hang.signal).then(({ status, text }) => `${status} ${text.length}: ${text.slice(0, 100)}`, (e) => `gone ${e.message}`)
      clearTimeout(timer); const took = Date.now() - started
      await sleep(1000)
      const waits = Object.entries(await seen()).map(([n, w]) => { const s = w.map((x) => x[1]).sort((a, b) => a - b); return `${n} p95 ${s[Math.floor(s.length * .95)]} worst ${s.at(-1)} [${w.filter((x) => x[1] > 200).map((x) => `${x[0] - started}+${x[1]}`).join(' ')}]` })
      console.log(`${each.name}: ${outcome}; took ${took}, cpu ${(server.cpu() - cpu).toFixed(2)}, load ${loadavg()[0].toFixed(1)}\n   ${waits.join('; ')}`)
      if (call_) {
        const { profile } = await call_('Profiler.stop')
        const nodes = new Map(profile.nodes.map((n) => [n.id, n])); const parent = new Map()
        for (const n of profile.nodes) for (const c of n.children ?? []) parent.set(c, n.id)
        const stack = (id) => { const s = []; for (let i = id; i !== undefined; i = parent.get(i)) s.unshift(nodes.get(i).callFrame.functionName || `anon:${nodes.get(i).callFrame.lineNumber + 1}`); return s }
        let stretches = [], cur, t = 0
        profile.samples.forEach((id, i) => { const d = profile.timeDeltas[i] / 1000; t += d; const s = stack(id); const key = s[1]
          if (key === '(idle)') { cur = undefined; return }
          if (key === '(program)' || key === '(garbage collector)') { if (cur) { cur.ms += d; cur.by.set(key, (cur.by.get(key) ?? 0) + d) } return }
          if (cur?.key !== key) { cur = { key, from: t, ms: 0, by: new Map() }; stretches.push(cur) }
          cur.ms += d; const at = s.filter((x) => x !== '(program)').slice(-9).join('>'); cur.by.set(at, (cur.by.get(at) ?? 0) + d) })
        for (const s of stretches.filter((s) => s.ms > 60).sort((a, b) => b.ms - a.ms).slice(0, 12)) { console.log(`  ${s.key} at ${s.from.toFixed(0)}: ${s.ms.toFixed(0)} ms`); for (const [at, ms] of [...s.by].sort((a, b) => b[1] - a[1]).slice(0, 5)) console.log(`      ${ms.toFixed(0)} ${at}`) }
      }
    }
    prober.kill()
  }
} finally { await server.close() }
process.exit(0)
