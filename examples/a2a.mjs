/** Agent2Agent: another agent asks, and goes on in the same context. */
import { SendMessageRequest } from '@a2a-js/sdk'
import { JsonRpcTransportFactory } from '@a2a-js/sdk/client'

const { PARLEY_URL: url = 'http://localhost:8108', PARLEY_KEY: key = 'xyz' } = process.env
const fetchImpl = (to, by) => fetch(to, { ...by, headers: { ...by.headers, authorization: `Bearer ${key}` } })
const agent = await new JsonRpcTransportFactory({ fetchImpl }).create(`${url}/a2a/default`)
let contextId
for (const text of ['How is history stored?', 'How long is it kept?']) {
  const message = { messageId: crypto.randomUUID(), contextId, role: 'ROLE_USER', parts: [{ text }] }
  const task = await agent.sendMessage(SendMessageRequest.fromJSON({ message }))
  contextId = task.contextId
  console.log(task.artifacts[0].parts[0].content.value)
}
