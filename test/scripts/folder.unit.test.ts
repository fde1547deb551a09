import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { encryptionKey, endLeftovers, occupy, runs } from '../../scripts/folder.mjs'

const URL_HERE = 'http://localhost:8108'
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-folder-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** Another process that takes the folder and keeps it. */
async function holder() {
  const module = pathToFileURL(join(import.meta.dirname, '../../scripts/folder.mjs')).href
  const script = `const { occupy } = await import(${JSON.stringify(module)})
    await occupy(${JSON.stringify(folder)}, ${JSON.stringify(URL_HERE)}); console.log('held'); setInterval(() => {}, 1e6)`
  const child = spawn(process.execPath, ['--no-warnings', '--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
  return child
}

test('a folder is for one process, and free in the moment in which that is killed', async () => {
  for (let round = 0; round < 3; round++) {
    const child = await holder()
    const refused = occupy(folder, 'http://localhost:9')
    await expect(refused).rejects.toThrow(
      `${folder} is in use by process ${child.pid}, which answers at ${URL_HERE}`,
    )
    await expect(refused).rejects.toThrow('--persist-to DIR')
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
    const place = await occupy(folder, URL_HERE)
    place.release()
  }
  expect(existsSync(join(folder, 'in-use.json'))).toBe(false)
})

test('of many that want a folder at once, one gets it', async () => {
  const tries = await Promise.allSettled(Array.from({ length: 20 }, () => occupy(folder, URL_HERE)))
  const taken = tries.filter((each) => each.status === 'fulfilled')
  expect(taken).toHaveLength(1)
  taken[0]!.value.release()
  ;(await occupy(folder, URL_HERE)).release()
})

test.each(['', '{', '{}', 'null', '{"pid":"x","url":1}', '{"pid":0,"url":"http://localhost:1"}'])(
  'a notice that says nothing takes nothing: %j',
  async (text) => {
    writeFileSync(join(folder, 'in-use.json'), text)
    ;(await occupy(folder, URL_HERE)).release()
  },
)

test('a version before, which knew no lock, keeps its folder as long as it listens, however busy', async () => {
  const server = createServer(() => {}).listen(0, '127.0.0.1') // takes connections and never answers
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  writeFileSync(join(folder, 'in-use.json'), JSON.stringify({ pid: process.pid, url }))
  await expect(occupy(folder, URL_HERE)).rejects.toThrow(`in use by process ${process.pid}`)
  server.close()
  server.closeAllConnections()
  await once(server, 'close')
  // Its process id is somebody else's by now.
  ;(await occupy(folder, URL_HERE)).release()
})

test('a file in the place of the folder, or on the way to it, is named', async () => {
  const file = join(folder, 'file')
  writeFileSync(file, '')
  await expect(occupy(file, URL_HERE)).rejects.toThrow(`${file} is no folder`)
  await expect(occupy(join(file, 'below'), URL_HERE)).rejects.toThrow('a part of that path is a file')
  expect(readFileSync(file, 'utf8')).toBe('')
})

test('a folder that cannot be written to is named', async () => {
  // Also for root, which the mode of a folder does not hold back.
  await expect(occupy('/proc/self/fdinfo', URL_HERE)).rejects.toThrow(
    '/proc/self/fdinfo cannot be written to',
  )
})

test('a lock file that is something else is named, and left as it is', async () => {
  const text = 'not a database, and longer than the header of one: '.repeat(20)
  writeFileSync(join(folder, 'lock.db'), text)
  await expect(occupy(folder, URL_HERE)).rejects.toThrow('lock.db cannot be locked')
  expect(readFileSync(join(folder, 'lock.db'), 'utf8')).toBe(text)
})

test('what a start noted is handed to the next one, until that has seen to it', async () => {
  const children = [{ pid: 1, line: 'a b' }]
  const first = await occupy(folder, URL_HERE)
  expect(first.left).toEqual([])
  first.note({ children })
  first.note({ entry: 'http://127.0.0.1:1' })
  const text = readFileSync(join(folder, 'in-use.json'), 'utf8')
  first.release()
  writeFileSync(join(folder, 'in-use.json'), text) // as after a kill
  for (const end of [false, true]) {
    const next = await occupy(folder, URL_HERE)
    expect(next.left).toEqual(children)
    if (end) next.note({ children: [] })
    const kept = readFileSync(join(folder, 'in-use.json'), 'utf8')
    next.release()
    writeFileSync(join(folder, 'in-use.json'), kept)
  }
  const last = await occupy(folder, URL_HERE)
  expect(last.left).toEqual([])
  last.release()
})

test('a process that was left is ended; one that has only its id is not', async () => {
  const args = ['-e', 'setInterval(() => {}, 1e6)', 'workerd']
  const child = spawn(process.execPath, args, { stdio: 'ignore' })
  await once(child, 'spawn')
  const pid = child.pid!
  const line = [process.execPath, ...args].join(' ')
  await expect.poll(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8')).toContain('workerd')
  expect(await endLeftovers([{ pid, line: `${line} of another start` }])).toEqual([])
  expect(runs(pid)).toBe(true)
  const gone = once(child, 'exit')
  expect(await endLeftovers([{ pid, line }])).toEqual([pid])
  expect((await gone)[1]).toBe('SIGKILL')
})

test('the key that seals is made once, and one that was cut off is made anew', () => {
  const key = encryptionKey(folder)
  expect(key).toMatch(/^[0-9a-f]{64}$/)
  expect(encryptionKey(folder)).toBe(key)
  writeFileSync(join(folder, 'encryption-key'), '')
  expect(encryptionKey(folder)).toMatch(/^[0-9a-f]{64}$/)
})
