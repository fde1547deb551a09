/** `npm start` itself: its data outlives it, its sample is loaded once, and nothing of it stays behind. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort, START, start, started } from './global-setup'
import { KEY } from './harness'

/** Two a round. */
const KILLS = Number(process.env.START_KILLS ?? (process.env.FULL ? 10 : 2))

/** All processes of this file have it in their environment: a runtime's command line has no port of its start. */
const MARK = `PARLEY_START_TEST=${process.pid}`

let folder: string
beforeAll(() => {
  const [name, value] = MARK.split('=')
  process.env[name!] = value
  folder = mkdtempSync(join(tmpdir(), 'parley-start-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Process {
  pid: number
  line: string
}

/** What runs of the starts of this file: their own script, what it calls, and the runtime. */
const processes = (): Process[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const has = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(MARK)
        const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
        return has && line !== '' ? [{ pid: Number(pid), line }] : []
      } catch {
        return [] // ended meanwhile
      }
    })

const runtimes = (): Process[] => processes().filter(({ line }) => line.includes('/workerd serve '))

const askSample = async (port: number, parameters: Record<string, string>) => {
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

const again = (...args: string[]) => spawnSync(process.execPath, [START, ...args], { encoding: 'utf8' })

const HEADERS = { 'X-TYPESENSE-API-KEY': KEY }

const create = async (port: number, name: string) => {
  const body = JSON.stringify({ name, fields: [{ name: 'text', type: 'string' }] })
  const init = { method: 'POST', headers: HEADERS, body }
  expect((await fetch(`http://localhost:${port}/collections`, init)).status).toBe(201)
}

const collections = async (port: number): Promise<string[]> => {
  const response = await fetch(`http://localhost:${port}/collections`, { headers: HEADERS })
  return ((await response.json()) as { name: string }[]).map(({ name }) => name).sort()
}

test('a start loads the sample, keeps its port and folder, and the next one finds all of it, even if its runtime dies', {
  timeout: 240_000,
}, async () => {
  const port = await freePort()
  // What a version before left there, and an empty notice.
  writeFileSync(join(folder, 'in-use.json'), '')
  const first = await start('--port', String(port), '--persist-to', folder)
  let conversationId: string
  let documents: number
  try {
    expect(first.output()).toContain(`Parley answers at http://localhost:${port}`)
    expect(first.output()).toContain('Loaded the sample')
    const { out_of, conversation } = await askSample(port, {})
    documents = out_of
    conversationId = conversation.conversation_id
    expect(documents).toBeGreaterThan(10)
    expect(conversation.answer).not.toBe('')

    const other = join(folder, 'other')
    const taken = again('--port', String(port), '--persist-to', other)
    expect(taken.status).toBe(1)
    expect(taken.stderr).toContain(`Port ${port} is taken.`)
    expect(taken.stderr).toContain(`npm start -- --port ${port + 1}`)

    // Its folder is left to it, too, when it is too busy to answer.
    const [runtime] = runtimes()
    process.kill(runtime!.pid, 'SIGSTOP')
    try {
      for (const another of [port, await freePort()]) {
        const second = again('--port', String(another), '--persist-to', folder)
        expect(second.status).toBe(1)
        expect(second.stderr).toContain(
          `${folder} is in use by process ${first.child.pid}, which answers at http://localhost:${port}.`,
        )
        expect(second.stderr).toContain('npm start -- --persist-to DIR --port N')
      }
    } finally {
      process.kill(runtime!.pid, 'SIGCONT')
    }
    expect(await isUp(port)).toBe(true)
  } finally {
    await first.stop()
  }
  expect(processes()).toEqual([])

  const second = await start('--port', String(port), '--persist-to', folder)
  try {
    expect(second.output()).toContain('The sample is there')
    const { out_of, conversation } = await askSample(port, { conversation_id: conversationId })
    expect(out_of).toBe(documents)
    expect(conversation.conversation_history.conversation).toHaveLength(4)

    const [runtime] = runtimes()
    process.kill(runtime!.pid, 'SIGKILL')
    await expect.poll(() => isUp(port), { timeout: 30_000 }).toBe(true)
    const after = await askSample(port, { conversation_id: conversationId })
    expect(after.conversation.conversation_history.conversation).toHaveLength(6)
  } finally {
    await second.stop()
  }
  expect(processes()).toEqual([])
})

test(`killed ${KILLS} times and started again at once, it has its data each time, and one runtime; it ends with its npm`, {
  timeout: 400_000,
}, async () => {
  const port = await freePort()
  const place = mkdtempSync(join(tmpdir(), 'parley-killed-'))
  const args = ['--port', String(port), '--persist-to', place, '--no-sample']
  const kill = async (child: ChildProcess) => {
    expect(child.exitCode).toBeNull()
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }
  const made: string[] = []
  try {
    for (let round = 0; round < KILLS / 2; round++) {
      // Killed while it prepares, at any moment of it, then when it serves.
      const early = spawn(process.execPath, [START, ...args], { stdio: ['ignore', 'pipe', 'ignore'] })
      await once(early.stdout, 'data')
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 2_000))
      await kill(early)
      const { child } = await start(...args)
      try {
        expect(await collections(port)).toEqual(made)
        made.push(`round-${round}`)
        await create(port, made.at(-1)!)
        expect(runtimes()).toHaveLength(1)
      } finally {
        await kill(child)
      }
    }
    const last = await started('npm', ['start', '--', ...args], { cwd: join(import.meta.dirname, '../..') })
    expect(last.output()).toMatch(/Ended process \d+, which a start that was killed had left behind/)
    expect(await collections(port)).toEqual(made)
    // A start ends with the npm that it was started by, even if that is killed.
    await kill(last.child)
    await expect.poll(processes, { timeout: 30_000 }).toEqual([])
  } finally {
    for (const { pid } of processes()) process.kill(pid, 'SIGKILL')
    rmSync(place, { recursive: true, force: true })
  }
})

test('a folder that cannot be one is refused with what to do', () => {
  const file = join(folder, 'a-file')
  writeFileSync(file, '')
  const refused = again('--persist-to', file)
  expect(refused.status).toBe(1)
  expect(refused.stderr).toContain(`${file} is no folder`)
  expect(refused.stderr).toContain('npm start -- --persist-to DIR')
  const readOnly = again('--persist-to', '/proc/self/fdinfo')
  expect(readOnly.status).toBe(1)
  expect(readOnly.stderr).toContain('/proc/self/fdinfo cannot be written to')
})
