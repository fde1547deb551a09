/**
 * The other side of each provider's wire, behind a relay that can fail: an independent mock for those that it
 * speaks, the double for Workers AI. All of them say the same, so that what differs is Parley's doing.
 */
import { type ChatCompletionRequest, type FixtureResponse, LLMock } from '@copilotkit/aimock'
import { InferenceUpstreamError } from '../../models/workers-ai/errors'
import { serveWorkersAi } from '../../models/workers-ai/server'
import type { Answer } from '../../models/workers-ai/shapes'
import { WorkersAi } from '../../models/workers-ai/workers-ai'
import { isStandalone, questionIn } from '../llm'
import { OwnParley } from '../own-parley'
import { type Fault, type Relay, startRelay } from './relay'

/** A question may carry the name of what is to happen: `[case: cut]`. */
const CASE = /\[case: (\w+)\]/

/** Long enough that half of its bytes are half of an answer on any wire, with letters of two and three bytes. */
export const ANSWER = `${'Größe, 日本語 and plain words. '.repeat(12)}The end.`
export const REASONING = 'This is what nobody is to read.'
export const REFUSED = 'The request is not valid.'
/** prompt and completion tokens of every answer */
export const TOKENS = [11, 7] as const

const question = (content: string): string =>
  questionIn(content) || (/\nQuery: ([\s\S]*)\nAnswer: $/.exec(content)?.[1] ?? content)

function textFor(content: string): string {
  if (CASE.test(content)) return ANSWER
  return isStandalone(content) ? `standalone: ${question(content)}` : `You asked: ${question(content)}`
}

const caseIn = (content: string): string | undefined => CASE.exec(content)?.[1]

function mocked({ messages }: ChatCompletionRequest, filter: string): FixtureResponse {
  const content = String(messages.at(-1)?.content ?? '')
  const usage = { prompt_tokens: TOKENS[0], completion_tokens: TOKENS[1] }
  const answer = { content: textFor(content), usage }
  switch (caseIn(content)) {
    case 'error':
      return { error: { message: REFUSED, type: 'invalid_request_error' }, status: 400 }
    case 'length':
      return { ...answer, finishReason: 'length' }
    case 'refusal':
      return { content: '', usage, finishReason: filter }
    case 'reasoning':
      return { ...answer, reasoning: REASONING }
    default:
      return answer
  }
}

/** What the double of Workers AI says to a prompt. */
export function doubled(content: string): Answer {
  const answer: Answer = { text: textFor(content), usage: [...TOKENS] }
  switch (caseIn(content)) {
    case 'error':
      throw new InferenceUpstreamError(5006, REFUSED)
    case 'length':
      return { ...answer, finish: 'length' }
    case 'refusal':
      return { ...answer, text: '', finish: 'content_filter' }
    case 'reasoning':
      return { ...answer, reasoning: REASONING }
    default:
      return answer
  }
}

/** A relay to a counterpart, and which Parley to ask where it is not the one of all tests. */
export type Counterpart = Relay & { parley?: string }

const FAULTS: Record<string, Fault> = { silence: 'silence', stall: 'stall', cut: 'cut', end: 'end' }

const faultOf = (body: string): Fault | undefined => FAULTS[caseIn(body) ?? '']

/** @param filter what the wire calls a withheld answer */
export async function startMock(filter: string): Promise<Relay> {
  const mock = new LLMock({ port: 0, chunkSize: 8, logLevel: 'silent' })
  // What it embeds gets the vectors that it makes by itself.
  mock.on({ predicate: ({ embeddingInput }) => embeddingInput === undefined }, (request) =>
    mocked(request, filter),
  )
  await mock.start()
  const relay = await startRelay(mock.url, faultOf)
  const { stop } = relay
  return Object.assign(relay, { stop: () => stop().then(() => mock.stop()) })
}

/** @param ai the double, for whoever wants to see what it was asked */
export async function startDouble(
  ai = new WorkersAi({ answer: (messages) => doubled(String(messages.at(-1)?.content)) }),
): Promise<Relay> {
  const double = await serveWorkersAi(ai)
  // What it embeds is answered well: the fault is the answer's.
  const relay = await startRelay(double.url, (body) =>
    body.includes('"messages"') ? faultOf(body) : undefined,
  )
  const { stop } = relay
  return Object.assign(relay, { stop: () => stop().then(() => double.stop()) })
}

/** The double as the binding of a Parley that is deployed, as far as one can be here. */
export async function startBound(): Promise<Counterpart> {
  const relay = await startDouble()
  const server = new OwnParley({ WORKERS_AI_URL: relay.url })
  await server.boot()
  const { stop } = relay
  return Object.assign(relay, { parley: server.url, stop: () => server.remove().then(stop) })
}
