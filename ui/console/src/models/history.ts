/** Collections in which conversation models keep what is said. */
import { read } from '../api'
import { server } from '../import/server'

/** As `parley init` makes it. */
const FIELDS = [
  { name: 'conversation_id', type: 'string' },
  { name: 'model_id', type: 'string' },
  { name: 'timestamp', type: 'int32' },
  { name: 'role', type: 'string', index: false },
  { name: 'message', type: 'string', index: false },
]

/** Those of some history collections that are not there, neither by name nor by an alias. @throws Refusal */
export async function missingOf(histories: readonly string[]): Promise<Set<string>> {
  const [collections, { aliases }] = await Promise.all([
    read<{ name: string }[]>('/collections'),
    read<{ aliases: { name: string }[] }>('/aliases'),
  ])
  const there = new Set([...collections, ...aliases].map(({ name }) => name))
  return new Set(histories.filter((name) => !there.has(name)))
}

/** Makes a history collection, unless it is there. @throws Refusal */
export async function makeHistory(name: string): Promise<void> {
  if (await server.find(`/collections/${encodeURIComponent(name)}`)) return
  await server.call('POST', '/collections', { body: { name, fields: FIELDS } })
}
