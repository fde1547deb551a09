/** Real documents, through the client: documentation, films and research abstracts that nobody wrote for a test. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { askBySearch, client, createModel, query, realDocuments, request, SHARED, unique } from './harness'

const patient = client('xyz', { connectionTimeoutSeconds: 120 })

const EMBEDDING = {
  name: 'embedding',
  type: 'float[]',
  embed: { from: ['title', 'text'], model_config: { model_name: 'ts/all-MiniLM-L12-v2' } },
}

/** Makes a collection and imports documents into it. @returns its name */
async function load(stem: string, fields: object[], documents: Record<string, unknown>[]): Promise<string> {
  const name = unique(stem)
  await patient.collections().create({ name, fields } as never)
  const results = await patient.collections(name).documents().import(documents, { batch_size: 100 })
  expect(results).toHaveLength(documents.length)
  expect((await patient.collections(name).retrieve()).num_documents).toBe(documents.length)
  return name
}

interface Citation {
  collection: string
  document_id: string
  start: number
  end: number
}

const pages = realDocuments('hono-docs')
describe.runIf(pages)('documentation', () => {
  test('a conversation of three turns, streamed, whose citations are documents', {
    timeout: 120_000,
  }, async () => {
    const name = await load(
      'hono',
      [
        { name: 'title', type: 'string' },
        { name: 'text', type: 'string' },
        { name: 'section', type: 'string', facet: true },
        { name: 'headings', type: 'string[]' },
        { name: 'code_languages', type: 'string[]', facet: true },
        { name: 'words', type: 'int32' },
        { name: 'updated_at', type: 'int64' },
        EMBEDDING,
      ],
      pages ?? [],
    )
    const model = await createModel({ model_name: 'local/extractive', api_key: undefined, max_bytes: 65_536 })
    let conversation_id: string | undefined
    const questions = [
      'How do I set a cookie?',
      'And how do I delete it?',
      'Which middleware limits the body size?',
    ]
    for (const [turn, q] of questions.entries()) {
      const chunks: { message: string; conversation_id: string }[] = []
      const reply = (await patient.multiSearch.perform(
        {
          searches: [{ collection: name, query_by: 'title,text,embedding', exclude_fields: 'embedding' }],
        } as never,
        {
          q,
          conversation: true,
          conversation_stream: true,
          conversation_model_id: model,
          ...(conversation_id === undefined ? {} : { conversation_id }),
          streamConfig: { onChunk: (chunk: never) => chunks.push(chunk) },
        } as never,
      )) as unknown as {
        conversation: {
          answer: string
          conversation_id: string
          citations: Citation[]
          conversation_history: { conversation: object[] }
        }
      }
      const { answer, citations, conversation_history } = reply.conversation
      expect(chunks.map(({ message }) => message).join('')).toBe(answer)
      expect(conversation_history.conversation).toHaveLength(2 * (turn + 1))
      conversation_id ??= chunks[0]?.conversation_id
      expect(reply.conversation.conversation_id).toBe(conversation_id)

      expect(citations.length).toBeGreaterThan(0)
      for (const { collection, document_id, start, end } of citations) {
        expect(collection).toBe(name)
        const document = (await patient.collections(name).documents(document_id).retrieve()) as {
          text: string
        }
        expect(document.text.length).toBeGreaterThan(0)
        expect(end).toBeGreaterThan(start)
        expect(end).toBeLessThanOrEqual(answer.length)
      }
    }
  })
})

/** Each third film. */
const films = realDocuments('wiki-movies')?.filter((_, at) => process.env.FULL || at % 3 === 0)
describe.runIf(films)('films', () => {
  test('a question with filters and facets', { timeout: 240_000 }, async () => {
    const all = films as { id: string; year: number; genres: string[]; decade: string }[]
    const name = await load(
      'films',
      [
        { name: 'title', type: 'string' },
        { name: 'text', type: 'string' },
        { name: 'year', type: 'int32' },
        { name: 'decade', type: 'string', facet: true },
        { name: 'genres', type: 'string[]', facet: true },
        { name: 'cast', type: 'string[]' },
        EMBEDDING,
      ],
      all,
    )
    const model = await createModel({ model_name: 'local/extractive', api_key: undefined })
    const filter_by = 'year:>2010 && genres:=Horror'
    const wanted = all.filter(({ year, genres }) => year > 2010 && genres.includes('Horror'))

    const { body } = await askBySearch(model, name, 'Which film is about a family in a haunted house?', {
      query_by: 'title,text,embedding',
      filter_by,
      facet_by: 'decade',
    })
    const ids = new Set(wanted.map(({ id }) => id))
    expect(body.hits).toHaveLength(10)
    for (const hit of body.hits) expect(ids).toContain(hit.document.id)
    for (const { document_id } of body.conversation.citations) expect(ids).toContain(document_id)
    expect(body.conversation.answer).not.toBe('')

    const listed = await request(
      'GET',
      query(`/collections/${name}/documents/search`, { q: '*', filter_by, facet_by: 'decade', per_page: 1 }),
    )
    expect(listed.body.found).toBe(wanted.length)
    const counts = new Map<string, number>()
    for (const { decade } of wanted) counts.set(decade, (counts.get(decade) ?? 0) + 1)
    const shown = listed.body.facet_counts[0].counts.map((one: { value: string; count: number }) => [
      one.value,
      one.count,
    ])
    expect(new Map(shown)).toEqual(counts)
  })
})

// What ranks them is measured in test/search/scifact.full.worker.test.ts, too.
const abstracts = process.env.FULL ? realDocuments('scifact') : undefined
describe.runIf(abstracts)('research abstracts', () => {
  test('claims find the abstracts that bear on them', { timeout: 240_000 }, async () => {
    const fields = [
      { name: 'title', type: 'string' },
      { name: 'text', type: 'string' },
    ]
    const name = await load('scifact', fields, abstracts ?? [])
    const read = (file: string): string[] =>
      readFileSync(join(SHARED, 'scifact', file), 'utf8')
        .split('\n')
        .filter((line) => line !== '')
    const relevant = new Map<string, string[]>()
    for (const line of read('qrels.tsv').slice(1)) {
      const [claim = '', abstract = ''] = line.split('\t')
      relevant.set(claim, [...(relevant.get(claim) ?? []), abstract])
    }
    const claims = read('queries.jsonl').map((line) => JSON.parse(line) as { id: string; text: string })

    let recall = 0
    for (const { id, text } of claims) {
      const { body } = await request('POST', query('/multi_search', { q: text }), {
        searches: [{ collection: name, query_by: 'title,text', include_fields: 'id' }],
      })
      const found = body.results[0].hits.map((hit: { document: { id: string } }) => hit.document.id)
      const wanted = relevant.get(id) ?? []
      recall += wanted.filter((abstract) => found.includes(abstract)).length / wanted.length
    }
    // SQLite's own ranking, asked for any of the words, reaches 0.816 here.
    expect(recall / claims.length).toBeGreaterThan(0.75)
  })
})
