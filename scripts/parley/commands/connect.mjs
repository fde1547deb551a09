/** `parley connect`: a collection that lives in an existing cluster. */

import { readFile } from 'node:fs/promises'
import { engineFrom } from '../engine/engine.mjs'
import { COMMAND, quoted } from '../progress.mjs'
import { EXIT, Failure } from '../server.mjs'

/**
 * Names a collection of a cluster, or gives a connected one other nodes or credentials.
 * @param {import('../server.mjs').Server} server
 * @param {string} name of the collection here
 * @param {import('../engine/engine.mjs').EngineOptions & { schema?: string }} options
 *   `schema`: a file with the `fields` of a collection that the cluster does not have yet
 * @returns {Promise<{ created: boolean, collection: any }>} the collection as the server shows it
 * @throws Failure
 */
export async function connect(server, name, options) {
  const path = `/collections/${encodeURIComponent(name)}`
  const listed = await server.call('GET', '/collections')
  const present = listed.find((/** @type {{ name: string }} */ one) => one.name === name)
  if (present && present.engine === undefined) {
    throw new Failure(
      EXIT.usage,
      `The collection ${name} does not live in a cluster. \`${COMMAND} move ${quoted(name)} --to ENGINE\` copies it to one.`,
    )
  }
  const engine = await engineFrom(options.engine ?? present?.engine.type, options)
  if (present) return { created: false, collection: await server.call('PATCH', path, { body: { engine } }) }
  const schema = options.schema === undefined ? {} : await readSchema(options.schema)
  const collection = await server.call('POST', '/collections', { body: { ...schema, name, engine } })
  return { created: true, collection }
}

/** @param {string} file */
async function readSchema(file) {
  try {
    return JSON.parse(await readFile(file, 'utf8'))
  } catch {
    throw new Failure(EXIT.usage, `${file} is no JSON with the \`fields\` of a collection.`)
  }
}
