/** A turn outside any conversation: it is answered, charged, and forgotten. */
import { waitUntil } from 'cloudflare:workers'
import { database } from '../db/client'
import { recordCost } from '../db/turns'
import { dayOf } from '../db/usage'
import { ApiError, reasonOf } from '../errors'
import { withSettings } from '../models/sampling'
import { isForReaders, isNumbered, isTerminal, type LogEvent, type LogEventBody } from '../turn/events'
import { emptyTurn, fold } from '../turn/fold'
import type { AskRequest } from '../turn/request'
import { runTurn } from '../turn/run'
import { logTurn, TurnClock } from '../turn/turn-line'
import { TextGatherer } from './text-gatherer'
import { languageModelOf, rewriterOf } from './turn-models'

export type Single = Omit<AskRequest, 'conversationId' | 'continues' | 'named' | 'replaces' | 'searches'>

/**
 * Returns its events as lines of JSON (events.ts). If the reader leaves, the turn ends.
 * @param conversationId what the events name as their conversation. None is stored
 */
export function answerOnce(
  env: Cloudflare.Env,
  single: Single,
  conversationId = '',
): ReadableStream<Uint8Array> {
  const request: AskRequest = { ...single, searches: [], conversationId, continues: false }
  const { model, asker } = request
  const encoder = new TextEncoder()
  const left = new AbortController()
  const clock = new TurnClock()
  const turn = emptyTurn()
  let seq = 0
  let ended = false
  return new ReadableStream<Uint8Array>({
    start(controller) {
      const write = (body: LogEventBody): void => {
        if (left.signal.aborted) return
        const event: LogEvent = { ...body, conversation_id: conversationId, turn: 1, seq }
        fold(turn, event)
        // Drop operator events: they hold prompts, and this turn keeps no log.
        if (!isForReaders(event)) return
        if (isNumbered(event)) seq++
        ended = isTerminal(event)
        controller.enqueue(encoder.encode(`${JSON.stringify(event)}\n`))
      }
      const text = new TextGatherer((piece) => write({ type: 'delta', text: piece }))
      const emit = (body: LogEventBody): void => {
        if (left.signal.aborted || ended) return
        clock.see(body)
        if (body.type === 'delta') {
          text.add(body.text)
          return
        }
        text.flush()
        write(body)
        if (ended) text.end()
      }
      const search = () =>
        Promise.reject(new ApiError(400, 'A turn with passages of its own searches nothing.'))
      const { settings } = request
      const ports = {
        get model() {
          return languageModelOf(model, env)
        },
        get answerer() {
          return settings && languageModelOf(withSettings(model, settings), env)
        },
        rewriter: () => rewriterOf(model, env),
        search,
        schema: search,
        messages: async () => ({ messages: [], complete: true }),
        ttls: async () => new Map<string, number>(),
        store: async () => ({ ok: true, value: undefined }) as const,
        emit,
        now: () => Date.now(),
      }
      const work = runTurn(request, ports, left.signal).then(async (spent) => {
        text.end()
        if (!left.signal.aborted) controller.close()
        logTurn(env, turn, request, clock)
        const day = dayOf(Date.now())
        const [usage, ...others] = spent.map((spending) => ({ day, owner: asker.owner, ...spending }))
        await recordCost(database(env), { usage: usage!, ...(others.length > 0 && { others }) })
      })
      waitUntil(work.catch((error) => console.error('a turn could not be charged', reasonOf(error))))
    },
    cancel: () => left.abort(),
  })
}
