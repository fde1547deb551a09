/** A follow-up is searched together with the question before it, which tells what it is about. */

import { describe, expect, it } from 'vitest'
import { contentOf } from '../../src/lib/parts'
import type { SearchParameters } from '../../src/search/types'
import { asking, makeWorld, message, take } from './world'

const said = [
  message({ role: 'user', content: contentOf('Which horror films are set in space?') }),
  message({ role: 'assistant', content: contentOf('Alien is.') }),
]
const followUp = { continues: true, question: contentOf('What is it about?') }

describe('a follow-up', () => {
  it('is searched with the question before it, once beside its rewriting and once after', async () => {
    const world = makeWorld({ said })
    const searched: SearchParameters[] = []
    world.refuse = (_, params) => void searched.push(params)
    await take(world, asking(followUp))
    const context_q = 'Which horror films are set in space? What is it about?'
    expect(searched).toMatchObject([
      { q: 'What is it about?', context_q },
      { q: 'alone: What is it about?', context_q },
    ])
  })

  it('of many words is searched by them at once, and its rewriting with the question before it', async () => {
    const question = 'Which famous actors play android crew members aboard cargo ships?'
    const world = makeWorld({ said })
    const searched: SearchParameters[] = []
    world.refuse = (_, params) => void searched.push(params)
    await take(world, asking({ ...followUp, question: contentOf(question) }))
    expect(searched.map(({ q, context_q }) => [q, context_q])).toEqual([
      [question, undefined],
      [`alone: ${question}`, `Which horror films are set in space? ${question}`],
    ])
  })

  it('whose conversation is empty is searched as it is', async () => {
    const world = makeWorld()
    const searched: SearchParameters[] = []
    world.refuse = (_, params) => void searched.push(params)
    await take(world, asking({ ...followUp, named: true }))
    expect(searched.map(({ q, context_q }) => [q, context_q])).toEqual([['What is it about?', undefined]])
  })
})
