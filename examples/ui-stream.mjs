/** The AI SDK without a framework: the parts of an answer as they come. */
import { DefaultChatTransport, generateId, readUIMessageStream } from 'ai'

const { PARLEY_URL: url = 'http://localhost:8108', PARLEY_KEY: key = 'xyz' } = process.env
const headers = { authorization: `Bearer ${key}` }
const transport = new DefaultChatTransport({ api: `${url}/ui/default`, headers })
const question = { id: 'q1', role: 'user', parts: [{ type: 'text', text: 'How does Parley store history?' }] }
const asked = { chatId: generateId(), messages: [question], trigger: 'submit-message' }
const stream = await transport.sendMessages(asked)
let answer
for await (const message of readUIMessageStream({ stream })) answer = message
for (const part of answer.parts) console.log(part.text ?? part.title ?? '')
