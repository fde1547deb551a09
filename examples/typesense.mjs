/** Typesense's client, unchanged: a streamed answer, and a follow-up in the same conversation. */
import { Client } from 'typesense'

const { PARLEY_URL: url = 'http://localhost:8108', PARLEY_KEY: apiKey = 'xyz' } = process.env
const docs = new Client({ nodes: [{ url }], apiKey }).collections('docs').documents()

const ask = (q, conversation_id) =>
  docs.search({
    q,
    query_by: 'embedding,text',
    conversation: true,
    conversation_model_id: 'docs',
    ...(conversation_id && { conversation_id }),
    conversation_stream: true,
    streamConfig: { onChunk: ({ message }) => process.stdout.write(message) },
  })

const { conversation } = await ask('How is history stored?')
console.log('\n')
await ask('How long is it kept?', conversation.conversation_id)
console.log()
