import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { contentOf } from '../../src/lib/parts'
import { labelOf, meaningOf } from '../../src/turn/passage'
import { config } from '../models/ask'
import { asking, makeWorld, ofType, says, take } from './world'

describe('the label of a document', () => {
  it.each([
    [{ id: '7' }, {}, '7.txt'],
    [{ id: 'guide#how-to' }, {}, 'guide%23how-to.txt'],
    [{ id: '7', sourcepage: 'plan.pdf#page=3' }, { field: 'sourcepage' }, 'plan.pdf#page=3'],
    [{ id: '7', sourcepage: ' [a]: b\n ' }, { field: 'sourcepage' }, '%5Ba%5D%3A b'],
    [{ id: '7', sourcepage: ' ' }, { field: 'sourcepage' }, '7.txt'],
    [{ id: '7', sourcepage: 3 }, { field: 'sourcepage' }, '7.txt'],
    [{ title: 'nameless' }, {}, undefined],
  ])('%j by %j is %s', (document, labelling, label) => {
    expect(labelOf(document, labelling)).toBe(label)
  })

  it('fits between brackets and before a colon, and leads back to its document', { timeout: 30_000 }, () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (id) => {
        const label = labelOf({ id }, {})!
        expect(label).not.toMatch(/[[\]:#?\p{Cc}]/u)
        expect(meaningOf(label).ids[0]).toBe(id)
      }),
    )
    fc.assert(
      fc.property(fc.string({ unit: 'binary', minLength: 1 }), (name) => {
        fc.pre(name.trim() !== '')
        const label = labelOf({ id: '0', name }, { field: 'name' })!
        expect(label).not.toMatch(/[[\]:\p{Cc}]/u)
        expect(meaningOf(label).names).toContain(name.trim())
      }),
    )
  })

  it('can be written as it is in an address that its server decodes once', () => {
    expect(meaningOf('guide#how-to.txt').ids).toEqual(['guide#how-to'])
    expect(meaningOf('100%.txt').ids).toEqual(['100%'])
    expect(meaningOf('a%23b.txt').ids).toEqual(['a#b', 'a%23b'])
    expect(meaningOf('.txt')).toEqual({ ids: [], names: ['.txt'] })
  })
})

describe('in a turn, labels', () => {
  it('stand in the prompt, which asks for them in brackets, and count as citations', async () => {
    const world = makeWorld({ speak: () => says('A guest comes aboard [1.txt]. It is hungry.') })
    const model = config({ model_name: 'vllm/x', vllm_url: 'u', system_prompt: 'Be brief.' })
    const events = await take(world, asking({ model, labels: {} }))
    const [system, user] = world.asked[0]!.messages
    expect(system?.content).toMatch(/^Be brief\.\n\nAfter each statement .* square brackets/)
    expect(user?.content).toContain('"citation_label": "1.txt"')
    expect(world.asked[0]?.sources).toMatchObject([{ label: '1.txt', document: { id: '1' } }])
    expect(ofType(events, 'citation')).toMatchObject([{ collection: 'films', document_id: '1', start: 0 }])
  })

  it('count among the bytes of the prompt', async () => {
    const films = [{ id: 'x'.repeat(200) }]
    const model = config({ model_name: 'vllm/x', vllm_url: 'u', max_bytes: 400 })
    const fits = async (labels?: { field?: string }) => {
      const events = await take(
        makeWorld({ documents: { films } }),
        asking({ model, question: contentOf('q?'), ...(labels && { labels }) }),
      )
      return ofType(events, 'retrieval')[0]?.passages.length
    }
    expect([await fits(), await fits({})]).toEqual([1, 0])
  })
})
