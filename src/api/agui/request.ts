/** Reads AG-UI's `RunAgentInput`. Pure. */
import * as v from 'valibot'
import { badRequest } from '../../errors'
import { once } from '../../lib/once'
import type { Decision } from '../../turn/request'
import { shaped } from '../http/body'
import { pageTool } from '../shared/assistant'
import { questionIn, textIn, transcriptIn } from '../shared/foreign'

const LONGEST_ID = 512
const Id = once(() => v.pipe(v.string(), v.nonEmpty(), v.maxLength(LONGEST_ID)))

/** Functions of the client's that a run may bring. */
const MOST_TOOLS = 64

const Offered = once(() =>
  v.looseObject({
    name: v.pipe(v.string(), v.regex(/^[\w-]{1,64}$/)),
    description: v.optional(v.pipe(v.string(), v.maxLength(4_000)), ''),
    parameters: v.nullish(v.record(v.string(), v.unknown()), { type: 'object', properties: {} }),
  }),
)

const Input = once(() =>
  v.looseObject({
    threadId: Id(),
    runId: Id(),
    messages: v.array(
      v.looseObject({
        role: v.string(),
        content: v.optional(v.unknown()),
        toolCallId: v.optional(v.string()),
        error: v.nullish(v.string()),
      }),
    ),
    tools: v.nullish(v.pipe(v.array(Offered()), v.maxLength(MOST_TOOLS))),
    context: v.nullish(v.array(v.unknown())),
    state: v.optional(v.unknown()),
    forwardedProps: v.optional(v.unknown()),
  }),
)

export type Run = Omit<ReturnType<typeof readRun>, 'messages' | 'tools'>

/** @throws ApiError 400 that names the place of the first fault */
export function readRun(body: unknown) {
  const { threadId, runId, messages, tools, context, state, forwardedProps } = shaped(Input(), body)
  const given = { context, state, forwardedProps }
  return {
    thread: threadId,
    run: runId,
    messages,
    /** functions that the client runs */
    tools: (tools ?? []).map(pageTool),
    /** names of parts of the input that an assistant does not use */
    ignored: Object.entries(given).flatMap(([name, value]) => (isEmpty(value) ? [] : [name])),
  }
}

/** @throws ApiError 400 */
export function readQuestion(body: unknown) {
  const { messages, ...run } = readRun(body)
  const asked = messages.at(-1)
  if (asked?.role === 'tool') return { ...run, question: '', transcript: [], decided: resultsIn(messages) }
  if (asked?.role !== 'user') {
    throw badRequest('The last of `messages` must be the message of a `user`: the question.')
  }
  const transcript = transcriptIn(messages.slice(0, -1))
  return { ...run, question: questionIn(asked), transcript, decided: undefined }
}

/** The results of the client's functions behind the last question. */
function resultsIn(messages: ReturnType<typeof readRun>['messages']): Record<string, Decision> {
  const at = messages.findLastIndex(({ role }) => role === 'user')
  return Object.fromEntries(
    messages.slice(at + 1).flatMap(({ role, toolCallId: id, content, error }): [string, Decision][] => {
      if (role !== 'tool' || id === undefined) return []
      if (error) return [[id, { result: error, failed: true }]]
      return [[id, { result: textIn(content ?? '', false) }]]
    }),
  )
}

const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  (typeof value === 'object' && Object.keys(value).length === 0) ||
  value === ''
