/** `npm start` itself: its data outlives it, its sample is loaded once, and nothing of it stays behind. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort, START, start } from './global-setup'
import { KEY } from './harness'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-start-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Running processes whose command line has this text. */
const processes = (text: string): { pid: number; line: string }[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return { pid: Number(pid), line: readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ') }
      } catch {
        return { pid: 0, line: '' } // ended meanwhile
      }
    })
    .filter(({ line }) => line.includes(text))

/** What a start leaves behind: its own script, and the runtime. */
const leftovers = (port: number) => [...processes(folder), ...processes(`localhost:${port} `)]

const ask = async (port: number, parameters: Record<string, string>) => {
  const search = new URLSearchParams({
    q: 'How do I create a conversation model?',
    query_by: 'embedding,title,heading,text',
    exclude_fields: 'embedding',
    conversation: 'true',
    conversation_model_id: 'docs',
    ...parameters,
  })
  const response = await fetch(`http://localhost:${port}/collections/docs/documents/search?${search}`, {
    headers: { 'X-TYPESENSE-API-KEY': KEY },
  })
  return (await response.json()) as {
    out_of: number
    conversation: {
      answer: string
      conversation_id: string
      conversation_history: { conversation: object[] }
    }
  }
}

const isUp = (port: number): Promise<boolean> =>
  fetch(`http://localhost:${port}/health`).then(
    ({ ok }) => ok,
    () => false,
  )

test('a start loads the sample, refuses a taken port, and the next one finds all of it, even if its runtime dies', {
  timeout: 180_000,
}, async () => {
  const port = await freePort()
  const first = await start('--port', String(port), '--persist-to', folder)
  let conversationId: string
  let documents: number
  try {
    expect(first.output()).toContain(`Parley answers at http://localhost:${port}`)
    expect(first.output()).toContain('Loaded the sample')
    const { out_of, conversation } = await ask(port, {})
    documents = out_of
    conversationId = conversation.conversation_id
    expect(documents).toBeGreaterThan(10)
    expect(conversation.answer).not.toBe('')

    const again = (...args: string[]) => spawnSync(process.execPath, [START, ...args], { encoding: 'utf8' })
    const taken = again('--port', String(port))
    expect(taken.status).toBe(1)
    expect(taken.stderr).toContain(`Port ${port} is taken.`)
    const shared = again('--port', String(await freePort()), '--persist-to', folder)
    expect(shared.status).toBe(1)
    expect(shared.stderr).toContain(`is in use by http://localhost:${port}`)
  } finally {
    await first.stop()
  }
  expect(leftovers(port)).toEqual([])

  const second = await start('--port', String(port), '--persist-to', folder)
  try {
    expect(second.output()).toContain('The sample is there')
    const { out_of, conversation } = await ask(port, { conversation_id: conversationId })
    expect(out_of).toBe(documents)
    expect(conversation.conversation_history.conversation).toHaveLength(4)

    const [runtime] = processes(`localhost:${port} `)
    process.kill(runtime!.pid, 'SIGKILL')
    await expect.poll(() => isUp(port), { timeout: 30_000 }).toBe(true)
    const after = await ask(port, { conversation_id: conversationId })
    expect(after.conversation.conversation_history.conversation).toHaveLength(6)
  } finally {
    await second.stop()
  }
  expect(leftovers(port)).toEqual([])
})
