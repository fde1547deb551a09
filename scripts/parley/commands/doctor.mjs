/** `parley doctor`: what is missing, misconfigured or unreachable, here and on the server. */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../../wrangler.mjs'
import { pendingVectors } from '../embedding.mjs'
import { COMMAND, quoted } from '../progress.mjs'
import { EXIT, Failure } from '../server.mjs'
import { ask } from './ask.mjs'

/** @typedef {{ what: string, ok: boolean, advice?: string }} Check */

const OLDEST_NODE = 20

/**
 * @param {import('../server.mjs').Server} server
 * @param {{ ask: boolean }} options `ask`: whether to put a question to each assistant, which may cost
 * @returns {Promise<Check[]>} in the order in which they are worth mending
 */
export async function examine(server, options) {
  const here = environment()
  if (here.some(({ ok }) => !ok)) return here
  try {
    return [...here, ...(await remote(server, options))]
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const what = error.code === EXIT.refused ? 'The key is accepted' : `The server at ${server.url} answers`
    return [...here, { what, ok: false, advice: error.message }]
  }
}

/** @returns {Check[]} */
function environment() {
  const major = Number(process.versions.node.split('.')[0])
  return [
    {
      what: `Node ${process.versions.node}`,
      ok: major >= OLDEST_NODE,
      advice: `Install Node ${OLDEST_NODE} or newer.`,
    },
    {
      what: 'Packages are installed',
      ok: existsSync(join(root, 'node_modules/wrangler')),
      advice: 'Run `npm ci`.',
    },
  ]
}

/** @param {import('../server.mjs').Server} server @param {{ ask: boolean }} options @returns {Promise<Check[]>} */
async function remote(server, options) {
  await server.call('GET', '/health')
  /** @type {Check[]} */
  const checks = [{ what: `The server at ${server.url} answers`, ok: true }]
  const collections = await server.call('GET', '/collections')
  checks.push({ what: 'The key is accepted', ok: true })
  const names = new Set(collections.map((/** @type {any} */ { name }) => name))
  for (const { name, engine } of collections) {
    if (engine) checks.push(cluster(name, engine))
    // The list of all does not say how far each one's vectors are.
    else checks.push(...embedding(await server.call('GET', `/collections/${encodeURIComponent(name)}`)))
  }

  const models = await server.call('GET', '/conversations/models')
  for (const { id, model_name, history_collection, fallbacks = [], rewrite_model } of models) {
    checks.push(
      linked(
        `Model ${id} (${model_name}) has its history`,
        history_collection,
        await known(server, names, history_collection),
        'collection',
      ),
    )
    for (const other of [...fallbacks, rewrite_model].filter(Boolean)) {
      const present = models.some((/** @type {any} */ each) => each.id === other)
      checks.push(linked(`Model ${id} leads to ${other}`, other, present, 'model'))
    }
  }
  const { assistants } = await server.call('GET', '/assistants')
  if (assistants.length === 0) {
    checks.push({
      what: 'There is an assistant',
      ok: false,
      advice: `\`${COMMAND} init --name docs\` makes one, with all that it needs.`,
    })
  }
  for (const { name, model, collections: searched, searches = [] } of assistants) {
    const present = models.some((/** @type {any} */ { id }) => id === model)
    checks.push(linked(`Assistant ${name} has its model`, model, present, 'model'))
    const wanted = searched ?? searches.map((/** @type {any} */ each) => each.collection)
    for (const each of wanted) {
      checks.push(
        linked(`Assistant ${name} finds ${each}`, each, await known(server, names, each), 'collection'),
      )
    }
    if (options.ask && present) checks.push(await answers(server, name))
  }
  return checks
}

/** @param {string} name @param {{ type: string, error?: string }} engine @returns {Check} */
const cluster = (name, { type, error }) => ({
  what: `The ${type} cluster of ${name} answers`,
  ok: error === undefined,
  advice: `${error} Mend the cluster, or run \`${COMMAND} connect ${quoted(name)}\` with another node.`,
})

/** @param {any} collection @returns {Check[]} */
function embedding(collection) {
  const pending = pendingVectors(collection)
  if (collection.embedding_error) {
    return [
      {
        what: `Vectors of ${collection.name} are made`,
        ok: false,
        advice: `Its embedding model fails: ${collection.embedding_error}`,
      },
    ]
  }
  if (pending === 0) return []
  return [
    {
      what: `Vectors of ${collection.name}: ${pending} are still being made; words are found meanwhile`,
      ok: true,
    },
  ]
}

/** Whether a name stands for a collection, by itself or as an alias. @param {import('../server.mjs').Server} server @param {Set<string>} names @param {string} name */
const known = async (server, names, name) =>
  names.has(name) || (await server.find(`/aliases/${encodeURIComponent(name)}`)) !== undefined

/** @param {string} what @param {string} name @param {boolean} ok @param {string} kind @returns {Check} */
const linked = (what, name, ok, kind) => ({
  what,
  ok,
  advice: `There is no ${kind} "${name}": make it, or name another one.`,
})

/** @param {import('../server.mjs').Server} server @param {string} assistant @returns {Promise<Check>} */
async function answers(server, assistant) {
  const what = `Assistant ${assistant} answers`
  try {
    await ask(server, 'What is this about?', { assistant, json: true })
    return { what, ok: true }
  } catch (error) {
    return { what, ok: false, advice: /** @type {Error} */ (error).message }
  }
}
