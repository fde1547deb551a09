import { describe, expect, it } from 'vitest'
import { ProviderError } from '../../src/models/provider-error'
import type { Hit } from '../../src/search/types'
import { scoreOf } from '../../src/turn/retrieve'
import { config } from '../models/ask'
import { asking, makeWorld, ofType, take } from './world'

const hit = (parts: Partial<Hit>): Hit => ({ document: { id: '1' }, highlight: {}, highlights: [], ...parts })

describe('the score of a hit', () => {
  it.each([
    [
      'rank fusion',
      { hybrid_search_info: { rank_fusion_score: 0.7 }, text_match: 5, vector_distance: 0.1 },
      0.7,
    ],
    ['meaning', { vector_distance: 0.25 }, 0.75],
    ['words', { text_match: 3e12 }, 0.75],
    ['nothing', {}, 0],
  ])('is that of %s', (_, parts, score) => {
    expect(scoreOf(hit(parts))).toBe(score)
  })
})

it('documents that score too little stay out of the prompt, and in the reply', async () => {
  const search = { collection: 'films', objectId: 'films', params: { query_by: 'text' } }
  const events = await take(makeWorld(), asking({ searches: [{ ...search, minimumScore: 0.1 }] }))
  expect(ofType(events, 'retrieval')).toMatchObject([{ sources: [], replies: [{ result: { found: 1 } }] }])
})

describe('attachments', () => {
  const attachments = [{ name: 'notes.txt', text: 'The guest is called Kane.' }]

  it('come before all documents in the prompt, and are no sources', async () => {
    const world = makeWorld()
    const events = await take(world, asking({ attachments }))
    expect(world.asked[0]?.sources.map(({ document }) => document)).toEqual([
      { file: 'notes.txt', text: 'The guest is called Kane.' },
      expect.objectContaining({ id: '1' }),
    ])
    expect(world.asked[0]?.messages.at(-1)?.content).toContain('"file": "notes.txt"')
    expect(ofType(events, 'retrieval')[0]?.sources).toEqual([{ collection: 'films', document_id: '1' }])
  })

  it('stay when documents have to give way', async () => {
    const world = makeWorld({ documents: { films: [{ id: 'x'.repeat(200) }] } })
    const model = config({ model_name: 'vllm/x', vllm_url: 'u', max_bytes: 300 })
    await take(world, asking({ attachments, model, question: 'q?' }))
    expect(world.asked[0]?.sources.map(({ document }) => document.file)).toEqual(['notes.txt'])
  })
})

describe('the error of a turn', () => {
  it.each([
    ['busy', true],
    ['unreached', true],
    ['denied', true],
    ['refused', undefined],
  ] as const)('says of a provider that is %s whether it is at fault', async (fault, upstream) => {
    const speak = () => {
      throw new ProviderError(400, 'OpenAI API error: no', { fault })
    }
    const [error] = ofType(await take(makeWorld({ speak }), asking()), 'error')
    expect(error?.upstream).toBe(upstream)
  })
})
