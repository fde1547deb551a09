/** LangChain's ChatOpenAI: an answer as it is written, and a follow-up with what was said. */
import { ChatOpenAI } from '@langchain/openai'

const { PARLEY_URL: url = 'http://localhost:8108', PARLEY_KEY: apiKey = 'xyz' } = process.env
const model = new ChatOpenAI({ model: 'default', apiKey, configuration: { baseURL: `${url}/v1` } })
const said = [{ role: 'user', content: 'How is history stored?' }]
let answer = ''
for await (const { text } of await model.stream(said)) answer += text
console.log(answer)
said.push({ role: 'assistant', content: answer }, { role: 'user', content: 'When does it expire?' })
console.log((await model.invoke(said)).text)
