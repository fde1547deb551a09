/**
 * Reads the registry ahead. A question needs an assistant, its model, the model's history and some collections, and each
 * of these names the next. One query finds all of them and puts them into their caches, where the code that needs them
 * finds them.
 */
import { isAssistantFresh, readingAssistants } from '../db/assistants'
import { nearbyReads } from '../db/client'
import { isModelHeld, readingModels } from '../db/conversation-models'
import { type Named, readPipelineRows, readRegistry } from '../db/registry-rows'
import type { ResourceRow } from '../db/resources'
import { dayOf, isLimited, readingSpent, spentOnLimited } from '../db/usage'
import { reasonOf } from '../errors'
import { readStoredObject } from '../lib/stored-json'
import { isNameHeld, readingNames } from './names'

export type { Named }

/**
 * Does nothing if everything is in the caches. Never throws: what could not be read is read again where it is needed.
 * @param begun a call of the same request that is under way, beside the look-up of its key; it mostly reads the same
 * @param meanwhile called if the request has to wait
 */
export async function readAhead(
  env: Cloudflare.Env,
  named: Named,
  begun?: Promise<void>,
  meanwhile: () => void = () => {},
): Promise<void> {
  if (isKnown(named)) return
  meanwhile()
  await begun
  if (begun && isKnown(named)) return
  await readAllAhead(env, named)
}

/**
 * Reads all of it, whatever is in the caches. Never throws.
 * @returns the rows of a pipeline; undefined if they could not be read
 */
export const readAllAhead = (env: Cloudflare.Env, named: Named): Promise<ResourceRow[] | undefined> =>
  readAll(env, named).catch((error) => {
    console.error('the registry could not be read ahead', reasonOf(error))
    return undefined
  })

const isKnown = ({ assistant, model, collections = [] }: Named): boolean =>
  (assistant === undefined || isAssistantFresh(assistant)) &&
  (model === undefined || isModelHeld(model)) &&
  collections.every(isNameHeld)

async function readAll(env: Cloudflare.Env, named: Named): Promise<ResourceRow[]> {
  const keep = { assistant: readingAssistants(), model: readingModels(), name: readingNames() }
  const spent = readingSpent()
  const day = dayOf(Date.now())
  const { assistant, pipeline } = named
  // A replica may not know yet that an assistant is gone, what a pipeline is now, or what was spent a moment ago.
  const [rows, sums, resources] = await Promise.all([
    readRegistry(assistant === undefined && !pipeline ? nearbyReads(env) : env.DB, named),
    spentOnLimited(env.DB, day, named),
    pipeline ? readPipelineRows(env.DB, pipeline) : [],
  ])
  if (rows.assistant) keep.assistant(rows.assistant.name, rows.assistant)
  for (const row of rows.models) {
    keep.model(row.id, row)
    if (!isLimited(readStoredObject(row.config))) continue
    spent.onModel(
      day,
      row.id,
      sums.find(({ modelId }) => modelId === row.id),
    )
  }
  for (const { asked, ...row } of rows.collections) keep.name(asked, row)
  return resources
}
