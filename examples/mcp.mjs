/** The Model Context Protocol: what an agent does with the tool `ask`. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const { PARLEY_URL: url = 'http://localhost:8108', PARLEY_KEY: key = 'xyz' } = process.env
const requestInit = { headers: { authorization: `Bearer ${key}` } }
const client = new Client({ name: 'an example', version: '1.0.0' })
await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }))
let said = {}
for (const question of ['How is history stored?', 'How long is it kept?']) {
  const { conversation_id } = said.structuredContent ?? {}
  said = await client.callTool({ name: 'ask', arguments: { question, conversation_id } })
  console.log(said.content[0].text)
}
