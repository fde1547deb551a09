/** A language model that writes Markdown, and stops in the middle for as long as a test looks on. */
import { documentsIn, isStandalone, questionIn } from '../clients/llm'
import { serve } from '../serve'

export interface Writer {
  url: string
  /** what it answers to a question, by the documents that it was given */
  answer: (question: string, documents: Record<string, unknown>[]) => string
  /** the tool that it calls instead of answering */
  call: { name: string; arguments: object } | undefined
  /** what it suggests to ask next */
  followups: string[]
  /** addresses of the pictures that each answer was asked with */
  pictures: string[][]
  /** Has answers wait before this piece of eight characters, until `go`. */
  holdAt(piece: number): void
  go(): void
  /** milliseconds between pieces */
  gap: number
  /** answers begun */
  begun: number
  stop(): Promise<void>
}

const PIECE = 8

export async function startWriter(): Promise<Writer> {
  let held = Number.POSITIVE_INFINITY
  let gate = Promise.withResolvers<void>()
  const state = {
    answer: (question: string, _: Record<string, unknown>[]): string => `You asked: ${question}`,
    call: undefined as Writer['call'],
    followups: [] as string[],
    pictures: [] as string[][],
    gap: 0,
    begun: 0,
    holdAt(piece: number) {
      held = piece
      gate = Promise.withResolvers()
    },
    go() {
      held = Number.POSITIVE_INFINITY
      gate.resolve()
    },
  }
  const served = await serve(async (request, response) => {
    let body = ''
    for await (const piece of request) body += piece
    const { messages, stream } = JSON.parse(body)
    const said = messages.at(-1).content
    const parts: { type: string; text?: string; image_url?: { url: string } }[] = Array.isArray(said)
      ? said
      : [{ type: 'text', text: said }]
    const content = parts.map(({ text = '' }) => text).join('')
    const isResult = messages.at(-1).role === 'tool'
    const answers = isResult || content.includes('<Answer>')
    const call = isResult || !answers ? undefined : state.call
    const asksNext = !answers && !isStandalone(content) && content !== 'hello'
    const written = isResult
      ? `It says: ${content}`
      : answers
        ? state.answer(questionIn(content), documentsIn(content))
        : asksNext
          ? state.followups.join('\n')
          : isStandalone(content)
            ? questionIn(content)
            : 'Hello.'
    if (answers) {
      state.begun += 1
      state.pictures.push(parts.flatMap(({ image_url }) => image_url?.url ?? []))
    }
    if (stream !== true) {
      const message = { role: 'assistant', content: written }
      response.writeHead(200, { 'content-type': 'application/json' })
      return void response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }] }))
    }
    const write = (delta: object, finish: string | null = null) =>
      response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.flushHeaders()
    if (call) {
      const called = { name: call.name, arguments: JSON.stringify(call.arguments) }
      write(
        { tool_calls: [{ index: 0, id: crypto.randomUUID(), type: 'function', function: called }] },
        'tool_calls',
      )
      return void response.end('data: [DONE]\n\n')
    }
    for (let at = 0; at < written.length; at += PIECE) {
      if (answers && at / PIECE >= held) await gate.promise
      if (response.destroyed) return
      write({ content: written.slice(at, at + PIECE) })
      if (state.gap > 0) await new Promise((resolve) => setTimeout(resolve, state.gap))
    }
    write({}, 'stop')
    response.end('data: [DONE]\n\n')
  })
  return Object.assign(state, served)
}
