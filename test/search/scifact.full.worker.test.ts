/**
 * Retrieval quality on SciFact: 5,183 abstracts, 300 claims. Anserini's BM25 has nDCG@10 0.679 with title and
 * text as one field, 0.665 as two. The data lies beside the repository; without it there is nothing to measure.
 */
/// <reference types="vite/types/importMeta.d.ts" />
import { expect, it } from 'vitest'
import { makeCollection } from './make-collection'

const files = import.meta.glob<string>(
  '../../../shared/data/scifact/{corpus.jsonl,queries.jsonl,qrels.tsv}',
  {
    query: '?raw',
    import: 'default',
  },
)

const load = async (name: string): Promise<string[]> => {
  const path = Object.keys(files).find((candidate) => candidate.endsWith(name))
  return path === undefined ? [] : (await files[path]!()).trim().split('\n')
}

const isPresent = Object.keys(files).length === 3
if (!isPresent) console.log('SciFact is not beside the repository: its ranking is not measured.')

const gain = (place: number): number => 1 / Math.log2(place + 2)

it.runIf(isPresent)('ranks abstracts for claims', { timeout: 120_000 }, async () => {
  const documents = (await load('corpus.jsonl')).map((line) => JSON.parse(line))
  const queries: { id: string; text: string }[] = (await load('queries.jsonl')).map((line) =>
    JSON.parse(line),
  )
  const relevant = new Map<string, Set<string>>()
  for (const line of (await load('qrels.tsv')).slice(1)) {
    const [query, document] = line.split('\t')
    relevant.set(query!, (relevant.get(query!) ?? new Set()).add(document!))
  }
  const collection = await makeCollection(
    [
      { name: 'title', type: 'string' },
      { name: 'text', type: 'string' },
    ],
    documents,
  )
  let total = 0
  for (const { id, text } of queries) {
    const result = await collection.search({ q: text, query_by: 'title,text' })
    const wanted = relevant.get(id)!
    const ideal = Array.from({ length: Math.min(10, wanted.size) }, (_, place) => gain(place))
    const found = result.hits!.map(({ document }, place) => (wanted.has(document.id) ? gain(place) : 0))
    const sum = (gains: number[]): number => gains.reduce((a, b) => a + b, 0)
    total += sum(found) / sum(ideal)
  }
  const ndcg = total / queries.length
  console.log(`SciFact, keyword search: nDCG@10 ${ndcg.toFixed(4)}`)
  expect(ndcg).toBeGreaterThanOrEqual(0.66)
})
