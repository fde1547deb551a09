/** The examples of the API reference, each run as it is shown, in the order of its page. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { wires } from '../../scripts/docs/reference.mjs'
import { filled, idsIn } from '../../ui/docs/src/command'
import { freePort, type Started, start } from './global-setup'
import { type ScriptedLlm, says, startScriptedLlm } from './scripted-llm'

let data = ''
let url = ''
let parley: Started
let llm: ScriptedLlm

beforeAll(async () => {
  data = mkdtempSync(join(tmpdir(), 'parley-reference-'))
  const port = await freePort()
  url = `http://localhost:${port}`
  llm = await startScriptedLlm()
  llm.script.body = says('Hello.')
  parley = await start('--port', String(port), '--persist-to', data)
  // What the page says of conversation models: they need a history collection.
  const fields = ['conversation_id', 'model_id', 'role', 'message'].map((name) => ({ name, type: 'string' }))
  const made = await fetch(`${url}/collections`, {
    method: 'POST',
    headers: { 'x-typesense-api-key': 'xyz' },
    body: JSON.stringify({
      name: 'conversation_store',
      fields: [...fields, { name: 'timestamp', type: 'int32' }],
    }),
  })
  expect(made.status).toBe(201)
})
afterAll(async () => {
  await parley?.stop()
  await llm?.stop()
  rmSync(data, { recursive: true, force: true })
})

test.each(wires.map((wire) => [wire.title, wire] as const))(
  'every example of %s is answered',
  async (_, wire) => {
    const ids = new Map<string, string>()
    const placed = (text: string) => filled(text, ids).replaceAll('https://api.openai.com', llm.url)
    for (const { method, path, send = path, body, gives, refused } of wire.groups.flatMap(
      ({ routes }) => routes,
    )) {
      const [first = ''] = method.split(', ')
      const isText = typeof body === 'string'
      const response = await fetch(url + placed(send), {
        method: first,
        headers: {
          ...(wire.header === 'Authorization' ? { authorization: 'Bearer xyz' } : { [wire.header]: 'xyz' }),
          ...(body !== undefined && { 'content-type': isText ? 'application/x-ndjson' : 'application/json' }),
        },
        ...(body !== undefined && { body: placed(isText ? body : JSON.stringify(body)) }),
      })
      const text = await response.text()
      const conversation = response.headers.get('x-parley-conversation-id')
      const request = { method: first, path: placed(send), headers: {} }
      for (const [name, id] of idsIn(request, text, conversation)) ids.set(name, id)
      expect([`${first} ${send}`, response.status < 300 ? 'answered' : `${response.status} ${text}`]).toEqual(
        [
          `${first} ${send}`,
          refused
            ? expect.stringMatching(refused === true ? /^400 / : new RegExp(`^${refused} `))
            : 'answered',
        ],
      )
      // Imports and exports answer with a value on each line.
      const [line = '{}'] = text.split(/(?<=\})\n/)
      expect(gives === 'stream' ? text.length : JSON.parse(line || '{}'), send).toBeTruthy()
    }
  },
  120_000,
)
