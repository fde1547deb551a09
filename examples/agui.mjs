/** AG-UI: an assistant is an agent, and a thread is a conversation. */
import { HttpAgent } from '@ag-ui/client'

const { PARLEY_URL: url = 'http://localhost:8108', PARLEY_KEY: key = 'xyz' } = process.env
const headers = { authorization: `Bearer ${key}` }
const agent = new HttpAgent({ url: `${url}/agui/default`, headers, threadId: crypto.randomUUID() })
const onTextMessageContentEvent = ({ event }) => void process.stdout.write(event.delta)

for (const content of ['How is history stored?', 'How long is it kept?']) {
  agent.addMessage({ id: crypto.randomUUID(), role: 'user', content })
  await agent.runAgent({}, { onTextMessageContentEvent })
  console.log('\n')
}
