/** The two shapes that language models of Workers AI answer in, whole and as server-sent events. */

export interface Answer {
  text: string
  reasoning?: string
  /** prompt and completion tokens; by default what the texts come to */
  usage?: [number, number]
  /** `length` where the answer was cut at max_tokens, and so on; only the OpenAI shape tells it */
  finish?: string
  /** how a stream goes on after half of the answer: by default to its end */
  then?: 'cut' | 'stall' | 'error'
}

type Shape = 'native' | 'openai'

const usageOf = ([prompt_tokens, completion_tokens]: [number, number] = [0, 0]) => ({
  prompt_tokens,
  completion_tokens,
  total_tokens: prompt_tokens + completion_tokens,
})

export function whole(answer: Answer, shape: Shape, model: string): unknown {
  const usage = usageOf(answer.usage)
  if (shape === 'native') return { response: answer.text, tool_calls: [], usage }
  const message = {
    role: 'assistant',
    content: answer.text,
    ...(answer.reasoning !== undefined && { reasoning_content: answer.reasoning }),
  }
  return {
    id: 'chatcmpl-double',
    object: 'chat.completion',
    created: 1,
    model,
    choices: [{ index: 0, message, finish_reason: answer.finish ?? 'stop' }],
    usage,
  }
}

function* events(answer: Answer, shape: Shape, model: string): Generator<unknown> {
  const words = answer.text.match(/\s*\S+/g) ?? []
  const pieces = answer.then ? words.slice(0, Math.ceil(words.length / 2)) : words
  if (shape === 'native') {
    for (const response of pieces) yield { response, p: 'abcdefgh' }
    if (!answer.then) yield { response: '', usage: usageOf(answer.usage) }
    return
  }
  const chunk = (choices: unknown[], extra = {}) => ({
    id: 'chatcmpl-double',
    object: 'chat.completion.chunk',
    created: 1,
    model,
    choices,
    ...extra,
  })
  const delta = (part: object, finish_reason: string | null = null) =>
    chunk([{ index: 0, delta: part, finish_reason }])
  yield delta({ role: 'assistant', content: '' })
  if (answer.reasoning !== undefined) yield delta({ content: null, reasoning_content: answer.reasoning })
  for (const content of pieces) yield delta({ content })
  if (answer.then) return
  yield delta({}, answer.finish ?? 'stop')
  yield chunk([], { usage: usageOf(answer.usage) })
}

/** The bytes of a stream, an event a chunk. */
export function streamed(
  answer: Answer,
  shape: Shape,
  model: string,
  signal?: AbortSignal,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const said = events(answer, shape, model)
  return new ReadableStream<Uint8Array>({
    start(controller) {
      signal?.addEventListener('abort', () => controller.error(signal.reason), { once: true })
    },
    async pull(controller) {
      const { done, value } = said.next()
      const write = (data: string) => controller.enqueue(encoder.encode(`data: ${data}\n\n`))
      if (!done) return write(JSON.stringify(value))
      if (answer.then === 'stall') return new Promise(() => {})
      if (answer.then === 'error')
        write('{"error":{"message":"AiError: 3040: Capacity temporarily exceeded"}}')
      if (!answer.then) write('[DONE]')
      controller.close()
    },
  })
}
