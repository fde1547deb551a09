/** A real OpenSearch: one node, or a cluster of several on this machine. */
import { spawn } from 'node:child_process'
import { mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../scripts/own-server.mjs'
import { assemble, cache } from './assemble.mjs'
import { ready } from './servers.mjs'

const here = fileURLToPath(new URL('.', import.meta.url))
const note = join(cache, 'server.json')

/**
 * What one node needs to start, and to start again with its data.
 * @typedef {{ pid: number, url: string, log: string, command: string[] }} ReferenceNode
 */

/** The JDK of JAVA_HOME, where that is set: release 3 needs a newer one than release 2. */
const { JAVA_HOME } = process.env
const java = JAVA_HOME ? join(JAVA_HOME, 'bin', 'java') : 'java'

/** @param {string} name @returns {string} an empty folder that OpenSearch takes as its home */
function emptyHome(name) {
  const home = join(cache, name)
  rmSync(home, { recursive: true, force: true })
  for (const folder of ['config', 'modules', 'plugins', 'logs'])
    mkdirSync(join(home, folder), { recursive: true })
  writeFileSync(
    join(home, 'config', 'log4j2.properties'),
    'status = error\nappender.c.type = Console\nappender.c.name = c\nrootLogger.level = warn\nrootLogger.appenderRef.c.ref = c\n',
  )
  return home
}

/** @param {string[]} command @param {string} log */
function launch(command, log) {
  const [program, ...args] = /** @type {[string, ...string[]]} */ (command)
  const output = openSync(log, 'a')
  const child = spawn(program, args, { detached: true, stdio: ['ignore', output, output] })
  child.unref()
  return child
}

/** @param {ReferenceNode[]} nodes */
const remember = (nodes) => writeFileSync(note, JSON.stringify(nodes))

/** The nodes that were started last. @returns {ReferenceNode[]} none if none were */
export function runningNodes() {
  try {
    return JSON.parse(readFileSync(note, 'utf8'))
  } catch {
    return []
  }
}

/**
 * Starts an empty OpenSearch or Elasticsearch that goes on after this process.
 * @param {number} count of nodes. Several have no ML plugin, and hold an index's copies for each other.
 * @param {import('./assemble.mjs').Release} [release]
 * @returns {Promise<{ nodes: ReferenceNode[], without?: string }>}
 * @throws Error in one line, where OpenSearch cannot be had
 */
export async function startReference(count = 1, release = '2') {
  const { classPath, plugins, core, without } = await assemble(release)
  const ports = await freePorts(count * 2)
  const seeds = ports.slice(count).map((port) => `127.0.0.1:${port}`)
  const nodes = []
  const children = []
  for (let at = 0; at < count; at++) {
    const home = emptyHome(count === 1 ? 'home' : `home-${at + 1}`)
    const port = String(ports[at])
    const logging = join(home, 'config', 'log4j2.properties')
    const options = [
      '-Xms512m',
      '-Xmx1g',
      `-Dlog4j2.configurationFile=${logging}`,
      '-Dlog4j2.disable.jmx=true',
    ]
    const source = release === 'elasticsearch' ? 'Elasticsearch.java' : 'Reference.java'
    const program = [join(here, source), home, port]
    const member = [/** @type {string} */ (seeds[at]), String(ports[count + at]), seeds.join()]
    const which = count === 1 ? [plugins.join()] : [core.join(), ...member]
    const command = [java, ...options, '-cp', classPath, ...program, ...which]
    const log = join(home, 'server.log')
    const child = launch(command, log)
    children.push(child)
    nodes.push({ pid: /** @type {number} */ (child.pid), url: `http://127.0.0.1:${port}`, log, command })
  }
  remember(nodes)
  try {
    for (const [at, { url }] of nodes.entries()) {
      await ready(
        `${url}/_cluster/health?wait_for_nodes=${count}&timeout=120s`,
        /** @type {import("node:child_process").ChildProcess} */ (children[at]),
      )
    }
  } catch (error) {
    stopReference()
    throw new Error(`${/** @type {Error} */ (error).message} Its log: ${nodes[0]?.log}`)
  }
  return { nodes, ...(without !== undefined && { without }) }
}

/** @param {number} count @returns {Promise<number[]>} different ones that nobody uses now */
async function freePorts(count) {
  const ports = new Set()
  while (ports.size < count) ports.add(await freePort())
  return [...ports]
}

/** Starts a node of a cluster again, with its data. @param {ReferenceNode} node @returns {Promise<ReferenceNode>} */
export async function restartNode(node) {
  const child = launch(node.command, node.log)
  const again = { ...node, pid: /** @type {number} */ (child.pid) }
  remember(runningNodes().map((one) => (one.url === node.url ? again : one)))
  await ready(`${node.url}/_cluster/health`, child)
  return again
}

/** Ends the nodes that were started last. @returns {boolean} whether there were any */
export function stopReference() {
  const nodes = runningNodes()
  for (const { pid } of nodes) {
    try {
      // A stopped process ends once it goes on.
      process.kill(pid, 'SIGCONT')
      process.kill(pid)
    } catch {
      // It has ended already.
    }
  }
  rmSync(note, { force: true })
  return nodes.length > 0
}
