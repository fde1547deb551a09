import { describe, expect, it } from 'vitest'
import { contentOf } from '../../src/lib/parts'
import { ProviderError } from '../../src/models/provider-error'
import type { Hit, SearchParameters } from '../../src/search/types'
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
  const search = {
    collection: 'films',
    place: { engine: 'object', objectId: 'films' },
    params: { query_by: 'text' },
  }
  const events = await take(makeWorld(), asking({ searches: [{ ...search, minimumScore: 0.1 }] }))
  expect(ofType(events, 'retrieval')).toMatchObject([{ passages: [], searches: [{ found: 1 }] }])
  expect(ofType(events, 'results')).toMatchObject([{ replies: [{ result: { found: 1 } }] }])
})

describe('a question', () => {
  const sent = async (params: SearchParameters) => {
    const searched: SearchParameters[] = []
    const world = makeWorld({ refuse: (_, params) => void searched.push(params) })
    await take(
      world,
      asking({ searches: [{ collection: 'films', place: { engine: 'object', objectId: 'films' }, params }] }),
    )
    return searched[0]
  }

  it('is searched by any informative word, with words and meaning joined by their scores', async () => {
    expect(await sent({ query_by: 'text' })).toMatchObject({
      drop_tokens_threshold: '1000000',
      prefix: 'false',
      fusion: 'score',
    })
  })

  it('is searched as its caller says', async () => {
    const own = { query_by: 'text', drop_tokens_threshold: '0', prefix: 'true', fusion: 'rank' }
    expect(await sent(own)).toMatchObject(own)
    const weighed = await sent({ query_by: 'text', vector_query: 'embedding:([], alpha: 0.9)' })
    expect(weighed).not.toHaveProperty('fusion')
  })
})

describe('attachments', () => {
  const file = { type: 'file' as const, name: 'notes.txt', text: 'The guest is called Kane.' }

  it('come before all documents in the prompt, and are no sources', async () => {
    const world = makeWorld()
    const events = await take(world, asking({ question: [...contentOf('Who is the guest?'), file] }))
    expect(world.asked[0]?.sources.map(({ document }) => document)).toEqual([
      { file: 'notes.txt', text: 'The guest is called Kane.' },
      expect.objectContaining({ id: '1' }),
    ])
    expect(world.asked[0]?.messages.at(-1)?.content).toContain('"file": "notes.txt"')
    expect(ofType(events, 'retrieval')[0]?.passages).toMatchObject([
      { collection: 'films', id: '1', rank: 1 },
    ])
  })

  it('stay when documents have to give way', async () => {
    const world = makeWorld({ documents: { films: [{ id: 'x'.repeat(200) }] } })
    const model = config({ model_name: 'vllm/x', vllm_url: 'u', max_bytes: 300 })
    await take(world, asking({ model, question: [...contentOf('q?'), file] }))
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
