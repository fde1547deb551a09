/**
 * Assistants: everything that a chat on a page needs, under one name. An assistant has collections to search, a
 * conversation model, a prompt, and a list of what visitors may change.
 */

import * as v from 'valibot'
import {
  type AssistantRow,
  deleteAssistantRow,
  findAssistantRow,
  findModel,
  listAssistantRows,
  readAssistantRow,
  upsertAssistantRow,
} from '../db/registry'
import { ApiError, badRequest, coded, unwrap } from '../errors'
import { DAYS } from '../lib/hours'
import { once } from '../lib/once'
import { readStored } from '../lib/stored-json'
import { requireAllowed } from '../models/egress'
import { namespaceOf } from '../models/providers'
import { isSearchable } from '../search/schema/layout'
import type { CollectionSchema } from '../search/types'
import { getTool, isBuiltIn, toolsOf } from '../tools/tool'
import { findCollection } from './collections'
import { retrieverOf } from './engines'
import { storedConfig as storedModel } from './models'
import { OVERRIDES } from './overrides'

/** A search with parameters of its own, by their Typesense names. */
export type AssistantSearch = { collection: string } & Record<string, string | number | boolean>

const Stored = once(() =>
  v.object({
    /** id of the conversation model */
    model: v.string(),
    /** collections to search with their default fields; either these or `searches` */
    collections: v.exactOptional(v.array(v.string())),
    searches: v.exactOptional(
      v.array(v.objectWithRest({ collection: v.string() }, v.union([v.string(), v.number(), v.boolean()]))),
    ),
    /** replaces the model's own */
    system_prompt: v.exactOptional(v.string()),
    /** questions that a page can offer at the start */
    questions: v.array(v.string()),
    /** what a request may change */
    overrides: v.array(v.picklist(OVERRIDES)),
    /** origins of pages that may ask it, whatever their key; absent: all */
    allowed_origins: v.exactOptional(v.array(v.string())),
    /** the field whose value answers use to cite a document; absent: its id and `.txt` */
    citation_field: v.exactOptional(v.string()),
    title_field: v.exactOptional(v.string()),
    url_field: v.exactOptional(v.string()),
    /** the field that `include_category` and `exclude_category` filter by */
    category_field: v.string(),
    /** whether to suggest next questions if the request does not say so itself */
    followups: v.boolean(),
    /** `list`: beside the answer; `inline`: also in its text, as `<<Question?>>` */
    followup_style: v.picklist(['list', 'inline']),
    /** whether questions may include text files; absent: only in the AI Chat Protocol */
    attachments: v.exactOptional(v.boolean()),
    /** whether its pages may search while somebody types; absent: they may not */
    search: v.exactOptional(v.boolean()),
    /** names of tools that its model may call; absent: none (tools/tool.ts) */
    tools: v.exactOptional(v.array(v.string())),
    /** `agentic`: its model may call `search`, as if it stood in `tools`; absent: `plain` */
    retrieval: v.exactOptional(v.picklist(['plain', 'agentic'])),
    /** the share of an answer's sentences that the documents have to support; absent: any */
    minimum_support: v.exactOptional(v.number()),
    /** what becomes of an answer below that */
    below_support: v.exactOptional(v.picklist(['warn', 'withhold'])),
    /** how a visitor reaches people: an address to open, or a webhook; `after`: answers declined in a row until it is offered */
    handover: v.exactOptional(
      v.object({
        url: v.exactOptional(v.string()),
        webhook: v.exactOptional(v.string()),
        after: v.exactOptional(v.number()),
        /** when people are there; absent: always */
        hours: v.exactOptional(
          v.object({
            days: v.array(v.picklist(DAYS)),
            from: v.string(),
            to: v.string(),
            time_zone: v.string(),
          }),
        ),
        /** what is said outside of these hours */
        outside: v.exactOptional(v.string()),
      }),
    ),
    /** true: refuse settings that are unknown or not allowed; false: ignore them and say so */
    strict: v.boolean(),
  }),
)

export type AssistantConfig = v.InferOutput<ReturnType<typeof Stored>>

export type Assistant = AssistantConfig & { name: string }

/** An assistant as it is shown. Times in milliseconds since 1970. */
export type ShownAssistant = Assistant & { created_at: number; updated_at: number }

/** The assistant for requests that name none. */
export const DEFAULT_ASSISTANT = 'default'

/** The error for an unknown assistant, and for one that the asker may not use. */
export const assistantNotFound = (): ApiError => coded('unknown_assistant', 404, 'Assistant not found')

/**
 * Stores an assistant. It replaces one of the same name.
 * @throws ApiError 400 when it names a model, collection or field that is not there
 */
export async function putAssistant(
  env: Cloudflare.Env,
  name: string,
  config: AssistantConfig,
): Promise<ShownAssistant> {
  await checkReferences(env, config)
  return shown(await upsertAssistantRow(env.DB, { name, config: JSON.stringify(config) }, Date.now()))
}

/** @throws ValiError, SyntaxError for a configuration that no version has written */
export const storedConfig = ({ config }: Pick<AssistantRow, 'config'>): AssistantConfig =>
  readStored(Stored(), config)

export const listAssistants = async (env: Cloudflare.Env): Promise<ShownAssistant[]> =>
  (await listAssistantRows(env.DB)).map(shown)

/** @throws ApiError 404 */
export async function getAssistant(env: Cloudflare.Env, name: string): Promise<ShownAssistant> {
  const row = await readAssistantRow(env.DB, name)
  if (!row) throw assistantNotFound()
  return shown(row)
}

/** Reads an assistant without the cache, before a change; undefined for an unknown name. */
export async function readAssistant(env: Cloudflare.Env, name: string): Promise<AssistantConfig | undefined> {
  const row = await readAssistantRow(env.DB, name)
  return row && storedConfig(row)
}

/** Deletes an assistant. Its conversations stay. @throws ApiError 404 */
export async function deleteAssistant(env: Cloudflare.Env, name: string): Promise<ShownAssistant> {
  const row = await deleteAssistantRow(env.DB, name)
  if (!row) throw assistantNotFound()
  return shown(row)
}

/** Reads an assistant for a question; undefined for an unknown name. Cached for a few seconds. */
export async function findAssistant(env: Cloudflare.Env, name: string): Promise<Assistant | undefined> {
  const row = await findAssistantRow(env, name)
  return row && { ...storedConfig(row), name: row.name }
}

/** The tools that its model may call. To steer the retrieval is to call the search. */
export const toolNamesOf = ({ tools = [], retrieval }: AssistantConfig): string[] =>
  retrieval === 'agentic' ? [...new Set(['search', ...tools])] : tools

/** All searches of an assistant, with or without their own parameters. */
export const searchesOf = ({ collections = [], searches }: AssistantConfig): AssistantSearch[] =>
  searches ?? collections.map((collection) => ({ collection }))

const shown = (row: AssistantRow): ShownAssistant => ({
  name: row.name,
  ...storedConfig(row),
  created_at: row.createdAt,
  updated_at: row.updatedAt,
})

async function checkReferences(env: Cloudflare.Env, config: AssistantConfig): Promise<void> {
  const row = await findModel(env, config.model)
  if (!row) throw badRequest(`\`model\`: There is no conversation model \`${config.model}\`.`)
  const { model_name: name } = storedModel(row)
  const names = toolNamesOf(config)
  if (names.length > 0 && namespaceOf(name) === 'local') {
    const setting = config.retrieval === 'agentic' ? 'retrieval' : 'tools'
    throw badRequest(
      `\`${setting}\`: \`${config.model}\` has no language model that could call tools. Name another \`model\`.`,
    )
  }
  const offered = await toolsOf(env, names)
  for (const tool of config.tools ?? []) {
    if (!isBuiltIn(tool))
      await getTool(env, tool).catch(() => {
        throw badRequest(`\`tools\`: There is no tool \`${tool}\`. Store it first, by PUT /tools/${tool}.`)
      })
  }
  const named = offered.map((tool) => tool.name)
  const twice = named.find((tool, at) => named.indexOf(tool) < at)
  if (twice !== undefined) throw badRequest(`\`tools\`: Two tools are called \`${twice}\`.`)
  if (config.handover?.webhook !== undefined) {
    requireAllowed(config.handover.webhook, env, '`handover.webhook`')
  }
  const { citation_field: label } = config
  for (const { collection } of searchesOf(config)) {
    const schema = await schemaOf(env, collection)
    // A citation's address leads back to its document through this field.
    if (label !== undefined && !schema.fields.some((field) => field.name === label && isSearchable(field))) {
      throw badRequest(
        `\`citation_field\`: Collection \`${collection}\` has no indexed field of text \`${label}\`.`,
      )
    }
  }
}

async function schemaOf(env: Cloudflare.Env, collection: string): Promise<CollectionSchema> {
  try {
    return unwrap(await retrieverOf(env, await findCollection(env, collection)).schema())
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error
    const message = `\`collections\`: There is no collection \`${collection}\`.`
    throw badRequest(message)
  }
}
