/** POST /v1/completions: OpenAI's older API, where a prompt is one text. */
import * as v from 'valibot'
import type { Failure } from '../../errors'
import { once } from '../../lib/once'
import { textOf } from '../../lib/parts'
import type { TurnEvent } from '../../turn/events'
import { deliver } from '../http/deliver'
import type { OpenCall } from '../http/route'
import { chatReader } from '../shared/read'
import { streamTurn, type TurnEncoder, wholeTurn } from '../shared/stream'
import { askModel } from './ask-model'
import { finishReason, usageOf } from './encoder'
import { errorBody } from './errors'
import { checkBody, common, type ModelQuestion, othersOf, readMessages, SETTINGS, settings } from './question'

const body = once(() => {
  const none = (what: string) => v.nullish(v.union([v.literal(''), v.literal(false)], what))
  return v.looseObject({
    ...common(),
    prompt: v.union([
      v.string(),
      v.pipe(v.array(v.string()), v.length(1, 'One prompt can be answered at a time.')),
    ]),
    suffix: none('Nothing is written before a suffix.'),
    echo: none('A prompt is not repeated.'),
    best_of: v.nullish(v.literal(1, 'One answer can be written at a time: `best_of` must be 1.')),
    ...settings(),
  })
})

function readPrompt(given: unknown): ModelQuestion {
  const {
    model,
    prompt,
    stream,
    user,
    n: _,
    best_of: __,
    tool_choice: ___,
    ...others
  } = checkBody(body(), given)
  const content = typeof prompt === 'string' ? prompt : prompt[0]
  return {
    model,
    ...readMessages([{ role: 'user', content }], 'prompt'),
    stream: stream ?? false,
    ...(user && { user }),
    ...othersOf(others, SETTINGS),
  }
}

export async function completeText(call: OpenCall): Promise<Response> {
  const { asked, headers, ignored, conversationId, events, resume, delivery } = await askModel(
    call,
    readPrompt,
  )
  const shape = {
    id: `cmpl-${conversationId}`,
    object: 'text_completion',
    created: Math.floor(call.record.started / 1000),
    model: asked.model,
    ...(ignored && { context: { ignored } }),
  }
  const read = chatReader(events, resume)
  if (asked.stream) return streamTurn(read, new TextCompletionEncoder(shape), { headers, opensAt: 'text' })
  const turn = await wholeTurn(read)
  const choices = [choiceOf(textOf(turn.answer), finishReason(turn.finishReason))]
  return deliver({ ...shape, choices, usage: usageOf(turn.usage) }, headers, delivery(turn.turn))
}

const choiceOf = (text: string, finish_reason: string | null) => ({
  text,
  index: 0,
  logprobs: null,
  finish_reason,
})

const frame = (content: unknown): string => `data: ${JSON.stringify(content)}\n\n`

class TextCompletionEncoder implements TurnEncoder {
  readonly #shape: object
  /** a piece's frame before and after its text. All pieces have them in common */
  readonly #before: string
  readonly #after: string

  constructor(shape: object) {
    this.#shape = shape
    const { text: _, ...rest } = choiceOf('', null)
    this.#before = `data: ${JSON.stringify(shape).slice(0, -1)},"choices":[{"text":`
    this.#after = `,${JSON.stringify(rest).slice(1)}]}\n\n`
  }

  encode(event: TurnEvent): string {
    if (event.type === 'delta') return this.#before + JSON.stringify(event.text) + this.#after
    if (event.type !== 'done') return ''
    const choices = [choiceOf('', finishReason(event.finish_reason))]
    return `${frame({ ...this.#shape, choices })}data: [DONE]\n\n`
  }

  fail(failure: Failure): string {
    return frame(errorBody(failure))
  }
}
