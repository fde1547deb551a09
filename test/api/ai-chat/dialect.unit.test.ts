import { describe, expect, it } from 'vitest'
import { dialectOf, errorFormOf, isVersion, type Signals } from '../../../src/api/ai-chat/dialect'

const SDK = 'ts-http-runtime/1.0.0-alpha Node/20'

const signals = (parts: Partial<Signals>): Signals => ({ userAgents: [null, null], body: {}, ...parts })

describe('the dialect of a request (contract 1.9)', () => {
  it.each<[string, Partial<Signals>, string, string]>([
    ['nothing', {}, 'unnamed', 'text'],
    ['a session key', { body: { session_state: null } }, '2024-05-29', 'text'],
    [
      'a session key and other overrides',
      { body: { session_state: 's', context: { overrides: { top: 3 } } } },
      '2024-05-29',
      'text',
    ],
    [
      'overrides of the newest front end',
      { body: { session_state: null, context: { overrides: { send_text_sources: true } } } },
      '2026-04',
      'text',
    ],
    [
      'the same without a session key',
      { body: { context: { overrides: { send_text_sources: true } } } },
      'unnamed',
      'text',
    ],
    ['the client of npm', { userAgents: [SDK, null] }, '2024-08', 'object'],
    ['the client of npm in a browser', { userAgents: ['Mozilla/5.0', SDK] }, '2024-08', 'object'],
    ['its session key', { body: { sessionState: 's' } }, '2024-08', 'object'],
    ['both session keys', { body: { sessionState: 's', session_state: 's' } }, '2024-08', 'object'],
    [
      'the component in JavaScript',
      { body: { stream: true, context: { approach: 'rrr' } } },
      'azure-js',
      'fastify',
    ],
    ['a stream alone', { body: { stream: true } }, 'unnamed', 'text'],
    [
      'an approach among the overrides',
      { body: { stream: true, context: { overrides: { approach: 'rrr' } } } },
      'unnamed',
      'text',
    ],
    ['a version', { version: '2024-01-28' }, '2024-01-28', 'text'],
    [
      'a version against what the body says',
      { version: '2026-04', body: { session_state: null } },
      '2026-04',
      'text',
    ],
    [
      'a version, and the client of npm',
      { version: '2024-05-29', userAgents: [SDK] },
      '2024-05-29',
      'object',
    ],
    ['the version of objects', { version: '2024-08' }, '2024-08', 'object'],
    ['a context that is no object', { body: { stream: true, context: 'approach' } }, 'unnamed', 'text'],
  ])('is told by %s', (_, parts, dialect, form) => {
    expect([dialectOf(signals(parts)), errorFormOf(signals(parts))]).toEqual([dialect, form])
  })

  it('leaves the form of errors to whoever asks for an object', () => {
    expect(errorFormOf(signals({ version: '2024-05-29' }), 'object')).toBe('object')
    expect(errorFormOf(signals({}), 'string')).toBe('text')
  })

  it('knows its versions', () => {
    expect(['2024-01-28', '2024-08', '2024-8', 'azure-js', ''].map(isVersion)).toEqual([
      true,
      true,
      false,
      false,
      false,
    ])
  })
})
