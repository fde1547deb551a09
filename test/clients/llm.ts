/** The language model's side of the wire: a mock of OpenAI's API that remembers what it was asked. */
import { type ChatCompletionRequest, LLMock } from '@copilotkit/aimock'

export interface Call {
  messages: { role: string; content: string }[]
  stream: boolean
  body: Record<string, unknown>
}

export interface Llm {
  /** for `openai_url` and `vllm_url` */
  url: string
  /** what came in since `forget`, without the greeting that a new model is tried with */
  calls(): Call[]
  forget(): void
  stop(): Promise<void>
}

const lastContent = (request: ChatCompletionRequest): string => String(request.messages.at(-1)?.content ?? '')

export const isStandalone = (content: string): boolean => content.includes('<Conversation history>')

/** The question inside a prompt of the contract's shape, without its wording before it was rewritten. */
export const questionIn = (content: string): string =>
  /<Question>\n([\s\S]*?)(?:\n\(asked as: [\s\S]*?\))?\n\n<(?:Answer|Standalone question)>/.exec(
    content,
  )?.[1] ??
  /QUESTION: ([^\n]*)\nANSWER:$/.exec(content)?.[1] ??
  ''

/** The documents inside an answer's prompt. */
export const documentsIn = (content: string): Record<string, unknown>[] =>
  JSON.parse(/<Data>\n([\s\S]*?)\n\n<Question>/.exec(content)?.[1] ?? 'null')

/**
 * Starts the mock. It answers `You asked: <question>`, and makes `standalone: <question>` of a follow-up, in
 * pieces of eight characters when streaming, `latency` milliseconds apart.
 * @param answer what it answers instead, by the question and the system prompt
 */
export async function startLlm({
  latency = 0,
  answer = (question: string, _system: string): string => `You asked: ${question}`,
} = {}): Promise<Llm> {
  const mock = new LLMock({ port: 0, chunkSize: 8, latency })
  mock.on({ predicate: () => true }, (request) => {
    const content = lastContent(request)
    if (isStandalone(content)) return { content: `standalone: ${questionIn(content)}` }
    const [first] = request.messages
    const system = first?.role === 'system' ? String(first.content) : ''
    return { content: answer(questionIn(content) || content, system) }
  })
  await mock.start()
  return {
    url: mock.url,
    calls: () =>
      mock
        .getRequests()
        .map(({ body }) => body as unknown as Record<string, unknown> & Pick<Call, 'messages'>)
        .filter((body) => body?.messages !== undefined && body.messages.at(-1)?.content !== 'hello')
        .map((body) => ({ messages: body.messages, stream: body.stream === true, body })),
    forget: () => mock.clearRequests(),
    stop: () => mock.stop(),
  }
}
