/** Reads AG-UI's `RunAgentInput`. Pure. */
import * as v from 'valibot'
import { badRequest } from '../../errors'
import { once } from '../../lib/once'
import { shaped } from '../http/body'
import { questionIn, transcriptIn } from '../shared/foreign'

const LONGEST_ID = 512
const Id = once(() => v.pipe(v.string(), v.nonEmpty(), v.maxLength(LONGEST_ID)))

const Input = once(() =>
  v.looseObject({
    threadId: Id(),
    runId: Id(),
    messages: v.array(v.looseObject({ role: v.string(), content: v.optional(v.unknown()) })),
    tools: v.nullish(v.array(v.unknown())),
    context: v.nullish(v.array(v.unknown())),
    state: v.optional(v.unknown()),
    forwardedProps: v.optional(v.unknown()),
  }),
)

export type Run = Omit<ReturnType<typeof readRun>, 'messages'>

/** @throws ApiError 400 that names the place of the first fault */
export function readRun(body: unknown) {
  const { threadId, runId, messages, tools, context, state, forwardedProps } = shaped(Input(), body)
  const given = { tools, context, state, forwardedProps }
  return {
    thread: threadId,
    run: runId,
    messages,
    /** names of parts of the input that an assistant does not use */
    ignored: Object.entries(given).flatMap(([name, value]) => (isEmpty(value) ? [] : [name])),
  }
}

/** @throws ApiError 400 */
export function readQuestion(body: unknown) {
  const { messages, ...run } = readRun(body)
  const asked = messages.at(-1)
  if (asked?.role !== 'user') {
    throw badRequest('The last of `messages` must be the message of a `user`: the question.')
  }
  return { ...run, question: questionIn(asked), transcript: transcriptIn(messages.slice(0, -1)) }
}

const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  (typeof value === 'object' && Object.keys(value).length === 0) ||
  value === ''
