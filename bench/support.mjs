/**
 * How well the support of sentences is told (src/turn/citations.ts): `npm run bench support`. The answers of MTRAG's Wikipedia
 * conversations, which people mended, are compared with the passages that these people marked and with ten others. Then a number or a
 * name of each supported sentence is changed to another, from anywhere or from the same passages. Half of the conversations are
 * held out: nobody sets a limit by them.
 */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { random } from './documents.mjs'

const root = join(import.meta.dirname, '..')
const folder = join(process.env.PARLEY_DATA ?? join(root, '../shared/data'), 'mtrag-clapnq')
const NUMBER = /\b\d+(?:[.,]\d+)*\b/g
/** Words with capital letters that begin no sentence. */
const NAME = /(?<![.!?:"“]\s)(?<=\s)\p{Lu}\p{L}{2,}(?: \p{Lu}\p{L}{2,})*/gu

const readLines = (name) =>
  readFileSync(join(folder, name), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

async function program() {
  const outfile = join(root, 'node_modules/.cache/parley-support.mjs')
  const contents = `export * from './src/turn/citations'`
  await build({
    stdin: { contents, resolveDir: root, loader: 'ts' },
    bundle: true,
    format: 'esm',
    platform: 'node',
    outfile,
    external: ['cloudflare:*'],
    loader: { '.wasm': 'empty' },
    logLevel: 'error',
  })
  return import(pathToFileURL(outfile).href)
}

export async function benchSupport() {
  if (!existsSync(join(folder, 'turns.jsonl'))) {
    console.log(`support: there is no ${folder}.`)
    return
  }
  const { indexPassages, resolveCitations, supportOf } = await program()
  const passages = new Map(readLines('corpus.jsonl').map((passage) => [passage.id, passage]))
  const all = [...passages.values()]
  const names = all.slice(0, 2_000).flatMap(({ text }) => text.match(NAME) ?? [])
  const turns = readLines('turns.jsonl').filter(({ answerability }) => answerability === 'ANSWERABLE')
  const isOpen = ({ conversation_id: id }) => createHash('sha256').update(id).digest()[0] % 2 === 0
  for (const [half, some] of [
    ['development', turns.filter(isOpen)],
    ['held out', turns.filter((turn) => !isOpen(turn))],
  ]) {
    const next = random(7)
    const pick = (list) => list[Math.floor(next() * list.length)]
    const tally = {}
    const count = (name, isSupported) => {
      tally[name] ??= [0, 0]
      tally[name][isSupported ? 0 : 1] += 1
    }
    for (const { answer, relevant_ids: ids, rewrite, query } of some) {
      const marked = ids.map((id) => passages.get(id)).filter(Boolean)
      const found = [...marked, ...Array.from({ length: 10 }, () => pick(all))]
      const sources = found.map(({ id, title, text }) => ({ collection: 'c', document: { id, title, text } }))
      const index = indexPassages(sources)
      const question = rewrite ?? query
      const judge = (text) => supportOf(text, question, resolveCitations(text, sources, index), index)
      const texts = found.map(({ text }) => text).join(' ')
      for (const { start, end, support } of judge(answer)) {
        count('right sentences', support === 'supported')
        if (support !== 'supported') continue
        const sentence = answer.slice(start, end)
        const seed = (name, from, to) => {
          if (from === undefined || to === undefined || question.includes(from)) return
          if (to.includes(from) || from.includes(to)) return
          const changed = answer.slice(0, start) + sentence.replace(from, to) + answer.slice(end)
          count(name, judge(changed).find((each) => each.start === start)?.support === 'supported')
        }
        const number = pick(sentence.match(NUMBER) ?? [])
        seed('wrong numbers', number, String(Number.parseFloat(number) + 3 + Math.floor(next() * 20)))
        seed('wrong numbers of the same passages', number, pick(texts.match(NUMBER) ?? []))
        const name = pick(sentence.match(NAME) ?? [])
        seed('wrong names', name, pick(names))
        seed('wrong names of the same passages', name, pick(texts.match(NAME) ?? []))
      }
    }
    console.log(`\n${half}: ${some.length} answers`)
    for (const [name, [supported, doubted]] of Object.entries(tally)) {
      const share = (doubted / (supported + doubted)) * 100
      console.log(`  ${name}: ${share.toFixed(0)}% of ${supported + doubted} doubted`)
    }
  }
}
