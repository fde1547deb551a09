/** Collections in which conversation models keep what is said. */
import { server } from '../import/server'

/** As `parley init` makes it. */
const FIELDS = [
  { name: 'conversation_id', type: 'string' },
  { name: 'model_id', type: 'string' },
  { name: 'timestamp', type: 'int32' },
  { name: 'role', type: 'string', index: false },
  { name: 'message', type: 'string', index: false },
]

/** Whether a collection or an alias of this name is there. @throws Refusal */
export const isThere = async (name: string): Promise<boolean> =>
  Boolean(await server.find(`/collections/${encodeURIComponent(name)}`))

/** Makes a history collection, unless it is there. @throws Refusal */
export async function makeHistory(name: string): Promise<void> {
  if (await isThere(name)) return
  await server.call('POST', '/collections', { body: { name, fields: FIELDS } })
}
