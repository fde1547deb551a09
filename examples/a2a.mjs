/** Agent2Agent: another agent reads the assistant's card, asks, and goes on in the same context. */
import { SendMessageRequest } from '@a2a-js/sdk'
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client'

const { PARLEY_URL: url = 'http://localhost:8108', PARLEY_KEY: key = 'xyz' } = process.env
const fetchImpl = (address, init) => {
  const headers = [...new Headers(init?.headers), ['authorization', `Bearer ${key}`]]
  return fetch(address, { ...init, headers })
}
const cardResolver = new DefaultAgentCardResolver({ fetchImpl })
const factory = new ClientFactory({ transports: [new JsonRpcTransportFactory({ fetchImpl })], cardResolver })
const client = await factory.createFromUrl(`${url}/a2a/default/`)
let contextId
for (const text of ['How is history stored?', 'How long is it kept?']) {
  const message = { messageId: crypto.randomUUID(), contextId, role: 'ROLE_USER', parts: [{ text }] }
  const task = await client.sendMessage(SendMessageRequest.fromJSON({ message }))
  contextId = task.contextId
  console.log(task.artifacts[0].parts[0].content.value)
}
