import { describe, expect, it } from 'vitest'
import { meant, nearest } from '../../src/lib/nearest'

const KNOWN = ['model', 'collections', 'system_prompt', 'title_field', 'url_field']

describe('the name that was meant', () => {
  it.each([
    ['modle', 'model'],
    ['Model', 'model'],
    ['collection', 'collections'],
    ['systemPrompt', 'system_prompt'],
    ['system-prompt', 'system_prompt'],
    ['tilte_field', 'title_field'],
    ['urls', undefined],
    ['q', undefined],
    ['', undefined],
    ['temperature', undefined],
  ])('%s: %s', (given, name) => {
    expect(nearest(given, KNOWN)).toBe(name)
  })

  it('is the nearest of several', () => {
    expect(nearest('abcdef', ['abcxyz', 'abcdex', 'abcdyz'])).toBe('abcdex')
  })

  it('is asked for, or all are listed', () => {
    expect(meant('modle', KNOWN)).toBe('did you mean `model`?')
    expect(meant('x', ['a', 'b'])).toBe('the known ones are `a`, `b`.')
    expect(
      meant(
        'other',
        Array.from({ length: 30 }, (_, at) => `${at}`),
      ),
    ).toMatch(/`19` and others\.$/)
  })
})
