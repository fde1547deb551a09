/**
 * What the built-in embedder costs an import: documents a second with it and without it, until they are acknowledged and
 * until each has its vector; and the memory of workerd. Of English text, which word pieces are made for: Parley's own
 * documentation, each section many times.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { median, report } from './report.mjs'
import { call } from './server.mjs'

const COUNT = 10_000
const ROUNDS = 3
const DOCS = join(import.meta.dirname, '../docs')
const TEXTS = [
  { name: 'title', type: 'string' },
  { name: 'text', type: 'string' },
]
const VECTOR = {
  name: 'embedding',
  type: 'float[]',
  embed: { from: ['title', 'text'], model_config: { model_name: 'ts/all-MiniLM-L12-v2' } },
}

/** Sections of about 1 KB. */
function sections() {
  const texts = readdirSync(DOCS)
    .filter((file) => file.endsWith('.md'))
    .flatMap((file) => readFileSync(join(DOCS, file), 'utf8').split(/^## /m))
  return texts.map((text) => ({ title: text.split('\n')[0], text: text.slice(0, 1_000) }))
}

async function imported(server, name, fields, body) {
  await call(server, '/collections', { method: 'POST', body: JSON.stringify({ name, fields }) })
  const started = performance.now()
  await call(server, `/collections/${name}/documents/import`, { method: 'POST', body })
  const acknowledged = performance.now() - started
  while ((await call(server, `/collections/${name}`)).pending_embeddings > 0) await setTimeout(50)
  return { acknowledged, embedded: performance.now() - started }
}

export async function benchEmbedding(server) {
  const all = sections()
  const body = Array.from({ length: COUNT }, (_, n) => JSON.stringify(all[n % all.length])).join('\n')
  const before = server.memory()
  const rate = (milliseconds) => COUNT / (milliseconds / 1000)
  const plain = []
  const withVectors = []
  for (let round = 0; round < ROUNDS; round++) {
    plain.push(rate((await imported(server, `plain-${round}`, TEXTS, body)).acknowledged))
    withVectors.push(await imported(server, `vectors-${round}`, [...TEXTS, VECTOR], body))
  }
  const acknowledged = median(withVectors.map((each) => rate(each.acknowledged)))
  const embedded = median(withVectors.map((each) => rate(each.embedded)))
  console.log(
    `  until each has its vector: ${Math.round(embedded)}/s; workerd ${before.toFixed(0)} MiB before, ` +
      `${server.memory().toFixed(0)} MiB with ${ROUNDS * COUNT} vectors`,
  )
  report({
    what: `import of ${COUNT.toLocaleString('en')} documents of 1 KB with the built-in embedder, against the same without`,
    parley: `${Math.round(acknowledged)}/s`,
    baseline: `${Math.round(median(plain))}/s`,
    ratio: acknowledged / median(plain),
    aim: 0.25,
    better: 'higher',
  })
}
