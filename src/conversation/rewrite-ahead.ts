/**
 * Begins to rewrite a follow-up while its history is read, from what the log of this conversation says was said. So the
 * first token waits for one call less.
 *
 * The reply counts only if the history says the same. Anybody may have changed it through the documents API. Then the
 * question is rewritten again, and the call that was begun counts as a failed attempt.
 */
import type { Delta, GenerationRequest, LanguageModel } from '../models/language-model'
import { lasting, promptText, textOf } from '../parts'
import type { HistoryMessage } from '../turn/events'
import { usageOfPart } from '../turn/generate'
import type { AskRequest } from '../turn/request'
import { rewritingOf } from '../turn/rewrite'
import { stopOf } from '../turn/run'
import { byteLength } from '../turn/serialise'
import type { Spending } from '../turn/spending'
import type { Memory } from './memory'
import type { TurnLog } from './turn-log'
import { languageModelOf, rewriterOf } from './turn-models'
import type { QueuedTurn } from './turn-queue'

/**
 * How old the last answer may be, in seconds. A follow-up mostly comes within minutes. For this long, a message that somebody
 * deletes from the history may go to the model once more.
 */
const RECENT_SECONDS = 600

/**
 * @param memory what the conversation's object stores, if anything @param now milliseconds since 1970
 * @returns undefined if the history has to be read first
 */
export function rewriteAhead(
  env: Cloudflare.Env,
  memory: Memory | undefined,
  { request, abort }: Pick<QueuedTurn, 'request' | 'abort'>,
  now: number,
): RewriteAhead | undefined {
  const { asker, continues, copies, given, historyId, model, question, replaces } = request
  const isOther = !continues || replaces || given || copies !== undefined
  if (!memory || memory.closed || isOther || abort.signal.aborted) return undefined
  if (!memory.mayContinue(asker) || memory.histories.join() !== historyId) return undefined
  const said = saidLately(memory.log, model.max_bytes, now / 1000)
  if (said === undefined || said.some(({ timestamp }) => timestamp < now / 1000 - model.ttl)) return undefined
  try {
    return new RewriteAhead(env, model, rewritingOf(model, said, textOf(question)))
  } catch {
    // It does not fit into the prompt. The turn will say so.
    return undefined
  }
}

/**
 * The last messages, as search/history/turns.ts returns them.
 * @param bytes of text after which older ones are left out @param now unix seconds
 * @returns oldest first; undefined if there are none, or if the log may lack some
 */
function saidLately(log: TurnLog, bytes: number, now: number): HistoryMessage[] | undefined {
  const messages: HistoryMessage[] = []
  let total = 0
  for (const { turn, status, saidAt: timestamp } of log.ended(0).reverse()) {
    if (timestamp === null) {
      // It has taken the place of turns from elsewhere.
      if (status === 'done') return undefined
      continue
    }
    if (messages.length === 0 && timestamp < now - RECENT_SECONDS) return undefined
    const said = log.said(turn)
    if (!said) return undefined
    for (const [role, content] of [
      ['assistant', said.answer],
      ['user', lasting(said.question)],
    ] as const) {
      if (total > bytes) return messages
      total += byteLength(promptText(content))
      messages.unshift({ role, content, timestamp })
    }
  }
  return messages.length > 0 ? messages : undefined
}

/** A model whose reply to one prompt is under way. */
export class RewriteAhead implements LanguageModel {
  readonly name: string
  readonly #request: GenerationRequest
  readonly #stop = new AbortController()
  readonly #reply: AsyncIterator<Delta>
  readonly #first: Promise<IteratorResult<Delta>>
  readonly #model: () => Promise<LanguageModel>
  #chargedTo: string
  #isOver = false

  /** @param request what the turn will ask if nobody has changed the history */
  constructor(env: Cloudflare.Env, model: AskRequest['model'], request: GenerationRequest) {
    this.name = model.model_name
    this.#chargedTo = model.id
    this.#request = request
    this.#model = async () => {
      const rewriter = await rewriterOf(model, env)
      this.#chargedTo = rewriter?.chargedTo ?? model.id
      return rewriter ?? languageModelOf(model, env)
    }
    this.#reply = this.#ask(request, this.#stop.signal)
    this.#first = this.#reply.next()
    // A call that failed has cost nothing. Whoever waits for it learns of the failure.
    this.#first.catch(() => {
      this.#isOver = true
    })
  }

  async *generate(request: GenerationRequest, signal: AbortSignal): AsyncGenerator<Delta> {
    if (JSON.stringify(request.messages) !== JSON.stringify(this.#request.messages)) {
      const spent = this.drop()
      if (spent) {
        const error = 'The history has changed.'
        yield { type: 'failed', model: this.name, error, id: spent.modelId, received: 0 }
      }
      yield* this.#ask(request, signal)
      return
    }
    this.#isOver = true
    stopOf(signal).catch((reason) => this.#stop.abort(reason))
    for (let step = await this.#first; !step.done; step = await this.#reply.next()) yield step.value
  }

  /** Ends the call if no turn reads it. @returns what it has cost then */
  drop(): Spending | undefined {
    if (this.#isOver) return undefined
    this.#isOver = true
    this.#stop.abort()
    const { inputTokens, outputTokens } = usageOfPart(this.#request, 0)
    return { modelId: this.#chargedTo, inputTokens, outputTokens }
  }

  async *#ask(request: GenerationRequest, signal: AbortSignal): AsyncGenerator<Delta> {
    yield* (await this.#model()).generate(request, signal)
  }
}
