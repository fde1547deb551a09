/** A language model for pictures: it writes prepared answers at the pace of a usual one, citing what it was given. */
import { once } from 'node:events'
import { createServer } from 'node:http'

const GAP_MS = 45

/** What it answers, by the question. `[1]` and `[2]` stand for the first documents of the prompt. */
export const ANSWERS = [
  {
    question: 'How do I create a conversation model?',
    next: ['Which language models can answer?', 'How long is history kept?'],
    text: `First create a history collection, then post the model with the name of that collection. [1]

| Property | What it says |
| --- | --- |
| \`model_name\` | who writes, such as \`openai/gpt-4o-mini\` |
| \`history_collection\` | where conversations are kept |
| \`max_bytes\` | how much a prompt may hold |

\`\`\`sh
curl localhost:8108/conversations/models -d @model.json
\`\`\`

You can **ask your own documents** with it at once. [2]`,
  },
]

/** The labels of the documents in a prompt, best first. @param {string} prompt */
const labelsIn = (prompt) =>
  [...prompt.matchAll(/"citation_label": "((?:[^"\\]|\\.)*)"/g)].map(([, label]) => JSON.parse(`"${label}"`))

/** @param {string} prompt */
function answerTo(prompt) {
  const known = ANSWERS.find(({ question }) => prompt.includes(question))
  if (!known) return 'The documents do not answer this question.'
  const labels = labelsIn(prompt)
  const cited = known.text.replace(/\[(\d)\]/g, (_, number) => `[${labels[Number(number) - 1] ?? labels[0]}]`)
  return `${cited}\n\n${known.next.map((question) => `<<${question}>>`).join('\n')}`
}

/** @returns {Promise<{ url: string, stop: () => void }>} where it speaks OpenAI's API */
export async function startWriter() {
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const bytes of request) body += bytes
    const { messages, stream } = JSON.parse(body)
    const content = answerTo(
      messages.map((/** @type {{ content: string }} */ each) => each.content).join('\n'),
    )
    const usage = {
      prompt_tokens: Math.ceil(body.length / 4),
      completion_tokens: Math.ceil(content.length / 4),
    }
    if (stream !== true) {
      response.setHeader('content-type', 'application/json')
      const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }]
      return void response.end(JSON.stringify({ choices, usage }))
    }
    response.setHeader('content-type', 'text/event-stream')
    const write = (/** @type {object} */ chunk) => response.write(`data: ${JSON.stringify(chunk)}\n\n`)
    for (const piece of content.match(/\S+\s*/g) ?? []) {
      write({ choices: [{ index: 0, delta: { content: piece } }] })
      await new Promise((resolve) => setTimeout(resolve, GAP_MS))
    }
    write({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage })
    response.end('data: [DONE]\n\n')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  return {
    url: `http://127.0.0.1:${port}`,
    stop() {
      server.closeAllConnections()
      server.close()
    },
  }
}
