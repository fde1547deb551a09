/** Typesense's client, unchanged: a streamed answer, and a follow-up in the same conversation. */
import { Client } from 'typesense'

const { PARLEY_URL: url = 'http://localhost:8108', PARLEY_KEY: apiKey = 'xyz' } = process.env
const docs = new Client({ nodes: [{ url }], apiKey }).collections('docs').documents()
const model = { query_by: 'embedding,text', conversation: true, conversation_model_id: 'docs' }
const streamConfig = { onChunk: ({ message }) => process.stdout.write(message) }
let conversation_id
for (const q of ['How is history stored?', 'How long is it kept?']) {
  const asked = { ...model, q, conversation_id, conversation_stream: true, streamConfig }
  conversation_id = (await docs.search(asked)).conversation.conversation_id
  console.log('\n')
}
