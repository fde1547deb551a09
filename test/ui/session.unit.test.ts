/** How a turn ends for a page: by the code of its error, whatever its message says. */
import { describe, expect, test, vi } from 'vitest'
import { inWords, WORDS } from '../../ui/console/src/chat/words'
import type { TurnFault } from '../../ui/widget/src/wire'
import { ENGLISH, FAULTS } from '../../ui/widget/src/words'

interface Turn {
  state: string
  error: TurnFault
}

// By a variable: the types of a browser and those of Workers do not go together, and tests are checked with the latter.
const SESSION = '../../ui/widget/src/session'
const { Session } = await import(SESSION)
const { ApiError } = await import('../../ui/widget/src/api' as string)

// Node has no network that goes and comes.
vi.stubGlobal('addEventListener', () => {})
vi.stubGlobal('removeEventListener', () => {})

const PLACE = { server: 'http://parley.test', assistant: 'help', key: 'k', visitor: 'v' }

/** A server whose every turn ends in this error. */
const failing = (error: object) => ({
  ask: async () => {
    const events = [
      'id: 1.0\nevent: question\ndata: {"question":"Why?","conversation_id":"c"}\n\n',
      'id: 1.1\nevent: delta\ndata: {"text":"Because"}\n\n',
      `id: 1.2\nevent: error\ndata: ${JSON.stringify(error)}\n\n`,
    ]
    return new Response(events.join(''), { headers: { 'x-parley-conversation-id': 'c' } })
  },
})

/** The turn that was asked, once it has ended. */
async function ended(error: object): Promise<Turn> {
  const turns: Turn[] = []
  const listener = { changed: () => {}, ended: (turn: Turn) => void turns.push(turn) }
  const kept = { id: undefined, answered: false, keep: () => {} }
  await new Session(PLACE, listener, { api: failing(error), kept }).ask('Why?')
  expect(turns).toHaveLength(1)
  return turns[0]!
}

describe('a turn', () => {
  test('was stopped where its code says so, in whatever words', async () => {
    const error = { code: 'stopped', status: 400, message: 'Somebody pressed Stop.', retryable: false }
    const turn = await ended(error)
    expect(turn.state).toBe('stopped')
    expect(inWords(turn.error)).toBe(WORDS.stopped)
  })

  test('failed where its code says otherwise', async () => {
    const error = { code: 'model_failed', status: 503, message: 'The turn was stopped.', retryable: true }
    const turn = await ended(error)
    expect(turn).toMatchObject({ state: 'failed', error: { code: 'model_failed', status: 503 } })
    expect(inWords(turn.error)).toBe('The turn was stopped.')
  })

  test.each([
    ['unknown_conversation', /expired/],
    ['unknown_model', /no such conversation model/],
    ['unknown_collection', /no such collection/],
  ])('that is refused is explained by the code %s, in whatever words', (code, words) => {
    expect(inWords({ status: 404, message: 'Gone.', code })).toMatch(words)
    expect(inWords({ status: 400, message: 'Collection not found', code: 'bad_request' })).toBe(
      'Collection not found',
    )
  })

  test('that met a limit is explained by which one it is', () => {
    const inConsole = (code?: string) =>
      inWords({ status: 429, message: 'The budget renews at 00:00 UTC.', code })
    expect(inConsole('over_budget')).toBe('The budget renews at 00:00 UTC.')
    expect(inConsole('too_many_waiting')).toBe('The budget renews at 00:00 UTC.')
    for (const code of ['rate_limited', undefined])
      expect(inConsole(code)).toMatch(/^Too many questions at once/)
    const said = ['over_budget', 'too_many_waiting', 'rate_limited', 'too_long', 'unknown_conversation']
    expect(new Set(said.map((code) => ENGLISH[FAULTS[code]!])).size).toBe(said.length)
  })
})

test('a conversation is opened whose turns have no log any more', async () => {
  const stored = [1, 2].map((turn) => ({
    turn,
    question: 'Why?',
    answer: 'So.',
    citations: [],
    followups: [],
  }))
  const asked: string[] = []
  const api = {
    turns: async () => stored,
    follow: async (_id: string, after: string) => {
      asked.push(after)
      if (!after.endsWith('.999999999')) throw new ApiError(404, 'Turn not found', undefined, 'unknown_turn')
      return new Response(null, { status: 204 })
    },
  }
  const keep = vi.fn()
  const kept = { id: 'c', answered: true, keep }
  const session = new Session(PLACE, { changed: () => {}, ended: () => {} }, { api, kept })
  await session.open()
  expect(asked).toEqual(['1.0', '2.0', '2.999999999'])
  expect(session.turns).toHaveLength(2)
  expect(keep).toHaveBeenLastCalledWith('c', true)
})
