/** `npm run reference:opensearch -- start|compare|cluster|stop`: a real OpenSearch to hold Parley's answers against. */
import '../../scripts/installed.mjs'
import { parseArgs } from 'node:util'
import { disturb } from './cluster.mjs'
import { compare } from './compare.mjs'
import { startReference, stopReference } from './nodes.mjs'

const usage = `Usage: npm run reference:opensearch -- COMMAND

  start     brings up an empty OpenSearch with its ML plugin, and says where it answers;
            with --nodes 3 a cluster of three nodes, with --release 3 OpenSearch 3, both without the ML plugin;
            with --release elasticsearch one node of Elasticsearch 7.17
  compare   asks an empty OpenSearch and an empty Parley the same, prints what differs, and writes docs/opensearch.md
  cluster   starts three nodes with a million documents (--documents N), kills one and cuts one off while 50
            conversations stream, and says whether an answer was wrong; leaves out nothing but where OpenSearch cannot be had
  stop      ends the OpenSearch that was started

It needs a JDK of 17 or later (21 for --release 3; JAVA_HOME names another one), Maven, and git. What it downloads and compiles lies in ~/.cache/parley/reference, or in
the folder PARLEY_REFERENCE. PARLEY_REFERENCE_SOURCES names a folder with clones of ml-commons and neural-search, to be
taken in GitHub's place.`

const [command, ...names] = process.argv.slice(2)
try {
  if (command === 'start') {
    stopReference()
    const options = /** @type {const} */ ({
      nodes: { type: 'string', default: '1' },
      release: { type: 'string', default: '2' },
    })
    const { values } = parseArgs({ args: names, options })
    const { nodes: count, release } = values
    if (release !== '2' && release !== '3' && release !== 'elasticsearch') {
      throw new Error('--release is 2, 3 or elasticsearch.')
    }
    if (release === 'elasticsearch' && values.nodes !== '1')
      throw new Error('Elasticsearch is started as one node.')
    const { nodes, without } = await startReference(Number(count), release)
    for (const { url, pid } of nodes) console.log(`It answers at ${url}, process ${pid}.`)
    if (without !== undefined) console.log(`It has no ML plugin: ${without}`)
  } else if (command === 'cluster') {
    const options = /** @type {const} */ ({ documents: { type: 'string', default: '1000000' } })
    const { values } = parseArgs({ args: names, options })
    try {
      process.exitCode = await disturb(Number(values.documents))
    } finally {
      stopReference()
    }
  } else if (command === 'stop') {
    console.log(stopReference() ? 'OpenSearch was stopped.' : 'No OpenSearch was started here.')
  } else if (command === 'compare') {
    process.exitCode = await compare(names)
  } else {
    console.log(usage)
    process.exitCode = command === undefined || command === '--help' ? 0 : 1
  }
} catch (error) {
  console.error(/** @type {Error} */ (error).message)
  process.exitCode = 1
}
