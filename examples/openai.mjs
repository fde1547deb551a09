/** OpenAI's client: an assistant is a model, and a name of your own is a conversation. */
import OpenAI from 'openai'

const { PARLEY_URL: url = 'http://localhost:8108', PARLEY_KEY: apiKey = 'xyz' } = process.env
const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey })
const metadata = { conversation_id: crypto.randomUUID() }

for (const content of ['How is history stored?', 'How long is it kept?']) {
  const messages = [{ role: 'user', content }]
  const stream = await openai.chat.completions.create({ model: 'default', messages, metadata, stream: true })
  for await (const { choices } of stream) process.stdout.write(choices[0]?.delta.content ?? '')
  console.log('\n')
}
