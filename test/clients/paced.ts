/** A language model that writes at a steady pace, and notices when nobody listens any more. */
import { serve } from '../serve'

export interface Paced {
  url: string
  /** answers begun, greetings and rewritten questions left out */
  begun: number
  /** answers whose caller went before they were finished */
  abandoned: number
  stop(): Promise<void>
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Words of one to four bytes a letter. */
const WORDS = ['plain', 'naïve', '日本語', '🎬', '👩‍🚀', '"quoted"', 'line\nbreak', '\u2028']

export const words = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${WORDS[index % WORDS.length]}${index} `)

/**
 * A model's name says how much it writes, and how fast: `paced-100-5` writes 100 words, one in 5 ms, and `paced-100-5-9000`
 * says nothing for nine seconds before that.
 */
export async function startPaced(): Promise<Paced> {
  const counts = { begun: 0, abandoned: 0 }
  const served = await serve(async (request, response) => {
    let body = ''
    try {
      for await (const piece of request) body += piece
    } catch {
      // Its caller was killed in the middle of asking.
      return
    }
    const { model, messages, stream } = JSON.parse(body)
    const [, count, gap, silence = 0] = /^paced-(\d+)-(\d+)(?:-(\d+))?$/.exec(model) ?? []
    const content = String(messages.at(-1).content)
    const answers = content.includes('<Answer>') || content.endsWith('ANSWER:')
    const written = answers ? words(Number(count)) : [content === 'hello' ? 'Hello.' : 'a question']
    if (answers) counts.begun += 1
    let open = true
    response.once('close', () => {
      open = false
      if (!response.writableFinished && answers) counts.abandoned += 1
    })
    if (stream !== true) {
      const message = { role: 'assistant', content: written.join('') }
      if (answers) await sleep(Number(silence) + Number(count) * Number(gap))
      response.writeHead(200, { 'content-type': 'application/json' })
      return void response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }] }))
    }
    const write = (delta: object, finish: string | null = null) =>
      response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    if (answers) await sleep(Number(silence))
    const began = performance.now()
    for (const [index, word] of written.entries()) {
      // Against the clock: a timer a word would be late each time.
      while (open && performance.now() - began < index * Number(gap)) await sleep(1)
      if (!open) return
      write({ content: word })
    }
    write({}, 'stop')
    response.end('data: [DONE]\n\n')
  })
  return Object.assign(counts, served)
}
