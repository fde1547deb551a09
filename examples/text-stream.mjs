/** The AI SDK's plain text streams: nothing but the answer's text, as it is written. */
import { generateId, readUIMessageStream, TextStreamChatTransport } from 'ai'

const { PARLEY_URL: url = 'http://localhost:8108', PARLEY_KEY: key = 'xyz' } = process.env
const headers = { authorization: `Bearer ${key}` }
const transport = new TextStreamChatTransport({ api: `${url}/ui/default/text`, headers })
const question = { id: 'q1', role: 'user', parts: [{ type: 'text', text: 'How is history stored?' }] }
const asked = { chatId: generateId(), messages: [question], trigger: 'submit-message' }
let answer
for await (const message of readUIMessageStream({ stream: await transport.sendMessages(asked) }))
  answer = message
for (const { text } of answer.parts) console.log(text ?? '')
