/**
 * Agents of the ML plugin. A `flow` runs its tools one after another, and a `conversational_flow` keeps a memory of that. A
 * `conversational` agent is a turn whose model may call its searches.
 * @see https://docs.opensearch.org/latest/ml-commons-plugin/agents-tools/index/
 */
import * as v from 'valibot'
import { requireCollections, requireFewSearches } from '../../auth/authenticate'
import { ask, askOnce } from '../../conversation/ask'
import { begunOf } from '../../conversation/conversations'
import * as stored from '../../conversation/messages'
import { mapFew } from '../../lib/few'
import { parseShallow, tryJson } from '../../lib/json'
import { once } from '../../lib/once'
import { contentOf, textOf } from '../../lib/parts'
import { readStored } from '../../lib/stored-json'
import { fillText, LONGEST_FILLED } from '../../models/connector'
import * as registry from '../../registry/resources'
import { calledName, SEARCH_TOOL, type Tool } from '../../tools/tool'
import type { Turn } from '../../turn/fold'
import { admitTurn } from '../http/admit-turn'
import { override } from '../http/body'
import { findOpenModel } from '../http/chat-names'
import { planSearch, requireFewConditions } from '../http/plan'
import type { Call } from '../http/router'
import { eventReader, wholeTurn } from '../shared/stream'
import { catIndices } from './cluster'
import { illegalArgument, notANumber, statusError, unsupported } from './errors'
import { described, findIndices } from './indices'
import { requireTrusted } from './memory'
import { askerFor, messageIdOf, openMemory, requireMemory } from './memory-access'
import {
  allowText,
  found,
  ML,
  MODEL,
  may,
  type Resource,
  remoteError,
  removed,
  requireKnown,
  requireText,
  rowOf,
  textsOf,
  timesOf,
  written,
} from './ml'
import {
  defined,
  isObject,
  isOn,
  type Json,
  listed,
  namedIn,
  parseObject,
  type RouteRow,
  readBody,
  readObject,
} from './route'
import { AT_ONCE, countMore, execute, type Opened, paced, withFields } from './search'
import { newId } from './source'

// =============================================================================
// How an agent is registered and stored.

type Values = Record<string, string>

const Values = once(() => v.record(v.string(), v.string()))

const Agent = once(() =>
  v.object({
    name: v.string(),
    type: v.picklist(['flow', 'conversational_flow', 'conversational']),
    description: v.exactOptional(v.string()),
    app_type: v.exactOptional(v.string()),
    llm: v.exactOptional(v.object({ model_id: v.string(), parameters: Values() })),
    memory: v.exactOptional(v.object({ type: v.literal('conversation_index') })),
    parameters: Values(),
    tools: v.array(
      v.object({
        type: v.string(),
        name: v.exactOptional(v.string()),
        description: v.exactOptional(v.string()),
        parameters: Values(),
        include_output_in_agent_response: v.exactOptional(v.boolean()),
      }),
    ),
  }),
)

type Agent = v.InferOutput<ReturnType<typeof Agent>>
type ToolSpec = Agent['tools'][number]

const KEYS = 'name type description tools app_type memory llm parameters'
const TOOL_KEYS = 'type name description parameters include_output_in_agent_response attributes'
const TYPES = ['flow', 'conversational_flow', 'conversational']
const LONGEST_NAME = 128
const MOST_TOOLS = 20

const agentIn = ({ body }: registry.ResourceRow): Agent => readStored(Agent(), body)

const AGENT: Resource = {
  kind: 'agent',
  index: '.plugins-ml-agent',
  missing: (id) => `Failed to find agent with the provided agent id: ${id}`,
  shown: (row) => {
    const { parameters, ...agent } = agentIn(row)
    return { ...agent, ...(Object.keys(parameters).length > 0 && { parameters }), ...timesOf(row) }
  },
}

const nameOf = ({ name, type }: Pick<ToolSpec, 'name' | 'type'>): string => name ?? type

/** @throws ApiError 400, in the plugin's words where it has some */
function parseAgent(body: Json): Agent {
  requireKnown(body, KEYS, 'an agent')
  const { name, memory } = body
  if (typeof name !== 'string' || name.trim() === '' || name.length > LONGEST_NAME) {
    throw illegalArgument(`Agent name cannot be empty or exceed max length of ${LONGEST_NAME} characters`)
  }
  const type = requireText(body.type, "Agent type can't be null").toLowerCase()
  if (type === 'plan_execute_and_reflect') throw unsupported(`[type: ${type}]: take [conversational]; it`)
  if (!TYPES.includes(type)) throw illegalArgument(`${body.type} is not a valid Agent Type`)
  const llm = isObject(body.llm) ? body.llm : undefined
  if (type === 'conversational' && llm === undefined)
    throw illegalArgument('We need model information for the conversational agent type')
  if (memory !== undefined && !(isObject(memory) && memory.type === 'conversation_index'))
    throw illegalArgument(`Invalid memory type: ${isObject(memory) ? memory.type : memory}`)
  if (!Array.isArray(body.tools ?? []) || listed(body.tools).length > MOST_TOOLS)
    throw illegalArgument(`[tools] takes a list of at most ${MOST_TOOLS} tools`)
  const tools = listed(body.tools).map((tool) => parseTool(tool, type))
  const names = tools.map((tool) => (type === 'conversational' ? calledName(nameOf(tool)) : nameOf(tool)))
  const twice = names.find((each, at) => names.indexOf(each) < at)
  if (twice !== undefined) throw illegalArgument(`Duplicate tool defined: ${twice}`)
  if (tools.length === 0 && type !== 'conversational') throw illegalArgument('no tool configured')
  return {
    name,
    type: type as Agent['type'],
    tools,
    parameters: textsOf(body.parameters, 'parameters'),
    ...(memory !== undefined && { memory: { type: 'conversation_index' } }),
    ...defined({ description: allowText(body, 'description'), app_type: allowText(body, 'app_type') }),
    ...(llm && {
      llm: {
        model_id: requireText(llm.model_id, 'model id is null'),
        parameters: textsOf(llm.parameters, 'llm.parameters'),
      },
    }),
  }
}

/** @throws ApiError 400 */
function parseTool(given: unknown, agentType: string): ToolSpec {
  if (!isObject(given)) throw illegalArgument('[tools] takes objects')
  requireKnown(given, TOOL_KEYS, 'a tool')
  const type = requireText(given.type, 'tool type is null')
  const known = agentType === 'conversational' ? SEARCHING : Object.keys(TOOLS)
  if (!known.includes(type)) {
    throw unsupported(`[${type}] of a ${agentType} agent, whose tools may be ${known.join(', ')}; it`)
  }
  return {
    type,
    ...defined({ name: allowText(given, 'name'), description: allowText(given, 'description') }),
    parameters: textsOf(given.parameters, 'parameters'),
    ...(given.include_output_in_agent_response === true && { include_output_in_agent_response: true }),
  }
}

async function register({ env, request }: Call): Promise<Json> {
  const id = newId()
  await registry.storeNew(env, AGENT.kind, id, parseAgent(await readObject(request)))
  return { agent_id: id }
}

/** Given values replace stored ones. */
async function update({ env, path, request }: Call): Promise<Json> {
  const row = await rowOf(env, AGENT, path.id!)
  const agent = parseAgent({ ...agentIn(row), ...(await readObject(request)) })
  const version = await registry.storeOne(env, { ...row, body: JSON.stringify(agent) })
  return written(AGENT.index, path.id!, 'updated', version)
}

// =============================================================================
// The tools of a flow. A tool's parameters are texts, filled with those of the request and with what earlier tools replied.

/** What a tool is run for. */
interface Running {
  call: Call
  /** aborts when nobody waits any more */
  gone: AbortSignal
}

/** @returns what the tool replies @throws ApiError */
type Run = (given: Values, on: Running) => Promise<string>

/** What OpenSearch's tools reply where nothing is found. */
const NOTHING_FOUND = 'Can not get any match from search result.'

/** Hits of a tool's search, and earlier messages of a prompt. */
const MOST_HITS = 1_000

const needed = (given: Values, name: string): string => requireText(given[name], `[${name}] is null or empty`)

function number(given: Values, name: string, otherwise: number): number {
  const text = given[name] ?? String(otherwise)
  if (!/^\d{1,5}$/.test(text)) throw notANumber(text, ` of [${name}]`)
  if (Number(text) > MOST_HITS) throw illegalArgument(`[${name}] may be ${MOST_HITS} at most`)
  return Number(text)
}

/** A list that may be given as its only item. */
const namesIn = (text: string): string[] => listed(tryJson(text, parseShallow) ?? text).map(String)

/** The indices that a tool searches by the caller's own key. @throws ApiError 400, 401, 404, 429 */
async function openFor(call: Call, index: string): Promise<Opened[]> {
  requireCollections(call.access, 'documents:search', namedIn(index), call.record)
  const opened = await withFields(await findIndices(call, index))
  await countMore(call, opened.length - 1)
  return opened
}

async function hitsOf({ call, gone }: Running, index: string, body: Json): Promise<Json[]> {
  const { hits } = await execute({ ...call, gone }, await openFor(call, index), body, {})
  return (hits as Json).hits as Json[]
}

function neighbours(given: Values, on: Running): Promise<Json[]> {
  const query_text = needed(given, 'input')
  const neural = { [needed(given, 'embedding_field')]: { query_text, k: number(given, 'k', 10) } }
  const size = number(given, 'doc_size', 2)
  const _source = namesIn(needed(given, 'source_field'))
  return hitsOf(on, needed(given, 'index'), { size, _source, query: { neural } })
}

const linesOf = (hits: Json[]): string =>
  hits.length === 0
    ? NOTHING_FOUND
    : hits
        .map(({ _index, _source, _id, _score }) => `${JSON.stringify({ _index, _source, _id, _score })}\n`)
        .join('')

/** Asks a remote model with the tool's prompt. */
async function predicted(given: Values, { call: { env }, gone }: Running, model: string): Promise<string> {
  const { connector } = registry.modelIn(await rowOf(env, MODEL, model))
  if (connector === undefined) throw illegalArgument(`The model [${model}] makes vectors and no texts`)
  const { prompt, response_field: field = 'response', ...others } = given
  const parameters = { ...others, ...(prompt !== undefined && { prompt: fillText(prompt, given) }) }
  try {
    const { reply } = (await registry.predictWith(env, connector, parameters, gone)) ?? {}
    if (!isObject(reply)) throw statusError(404, `Failed to find connector of the model [${model}]`)
    return saidIn(reply, field) ?? JSON.stringify(reply)
  } catch (error) {
    throw remoteError(error)
  }
}

const Said = once(() => v.object({ content: v.string() }))
const Texts = once(() => v.looseTuple([v.object({ text: v.string() })]))

/** The text in a provider's reply, wherever the known ones have it. */
function saidIn(reply: Json, field: string): string | undefined {
  const { choices, completion, text, content, output } = reply
  const message = isObject(output) && isObject(output.message) ? output.message.content : content
  const [choice] = listed(choices)
  const chat = isObject(choice) && v.is(Said(), choice.message) ? choice.message.content : undefined
  const blocks = v.is(Texts(), message) ? message[0].text : undefined
  return [reply[field], chat, completion, text, blocks].find((each) => typeof each === 'string')
}

async function indicesTable(_: Values, { call }: Running): Promise<string> {
  const rows = (await catIndices({ ...call, path: {}, query: { format: 'json' } })) as Json[]
  const columns = Object.keys(rows[0] ?? {})
  const lines = rows.map((row, at) => [at + 1, ...columns.map((name) => row[name])])
  return [['row', ...columns], ...lines].map((line) => `${line.join(',')}\n`).join('')
}

/** What each tool does, and how. */
const TOOLS: Readonly<Record<string, readonly [about: string, run: Run]>> = {
  VectorDBTool: [
    'Finds documents by their meaning.',
    async (given, on) => linesOf(await neighbours(given, on)),
  ],
  MLModelTool: ['Asks a model.', (given, on) => predicted(given, on, needed(given, 'model_id'))],
  RAGTool: [
    'Answers from documents that it finds by their meaning.',
    async (given, on) => {
      const hits = await neighbours(given, on)
      if (given.enable_Content_Generation === 'false') return linesOf(hits)
      const output_field = hits
        .map(({ _id, _source }) => `_id: ${_id}\n_source: ${JSON.stringify(_source)}\n`)
        .join('')
      return predicted({ ...given, output_field }, on, needed(given, 'inference_model_id'))
    },
  ],
  SearchIndexTool: [
    'Searches an index by a query.',
    async (given, on) => {
      const asked = tryJson(needed(given, 'input'), parseShallow)
      if (!isObject(asked) || typeof asked.index !== 'string' || !isObject(asked.query))
        throw illegalArgument('[input] of the SearchIndexTool takes JSON with an [index] and a [query]')
      return linesOf(await hitsOf(on, asked.index, asked.query))
    },
  ],
  ListIndexTool: ['Lists the indices.', indicesTable],
  CatIndexTool: ['Lists the indices.', indicesTable],
  IndexMappingTool: [
    'Shows the mappings and settings of indices.',
    async (given, { call }) => {
      const collection = namesIn(given.index ?? needed(given, 'input')).join(',')
      requireCollections(call.access, 'collections:get', namedIn(collection), call.record)
      return JSON.stringify(
        await described('mappings', 'settings')({ ...call, path: { collection }, query: {} }),
      )
    },
  ],
}

/** Tools that a conversational agent's model may call: searches, which its turn makes. */
const SEARCHING = ['VectorDBTool', 'RAGTool']

/** A tool's parameters: its own, those of the request, and what the request gives this tool alone, as `TOOL.name`. */
function givenTo(tool: ToolSpec, known: Values): Values {
  const own = Object.entries(known).map(([key, value]) => {
    const [prefix] = [nameOf(tool), tool.type].filter((each) => key.startsWith(`${each}.`))
    return [prefix === undefined ? key : key.slice(prefix.length + 1), value]
  })
  const given: Values = { ...tool.parameters, ...Object.fromEntries(own) }
  return given.input === undefined ? given : { ...given, input: fillText(given.input, given) }
}

type Output = { name: string; result: string }

/** Runs tools one after another. @returns what each replied @throws ApiError 400 past LONGEST_FILLED, all of them together */
async function runTools(tools: readonly ToolSpec[], parameters: Values, on: Running): Promise<Output[]> {
  const known = { ...parameters }
  const outputs: Output[] = []
  let length = 0
  for (const tool of tools) {
    on.gone.throwIfAborted()
    const result = await TOOLS[tool.type]![1](givenTo(tool, known), on)
    length += result.length
    if (length > LONGEST_FILLED)
      throw illegalArgument(`The tools reply more than ${LONGEST_FILLED} characters: ask for fewer documents`)
    known[`${nameOf(tool)}.output`] = result
    outputs.push({ name: nameOf(tool), result })
  }
  return outputs
}

// =============================================================================
// Executing an agent.

/** A request to execute an agent. */
interface Execution extends Running {
  agent: Agent
  parameters: Values
  /** the request's body */
  text: string
}

/** Earlier messages that a flow's prompt gets. */
const MESSAGES = 10

async function executeAgent(call: Call): Promise<unknown> {
  const { env, path, request } = call
  const agent = agentIn(await rowOf(env, AGENT, path.id!))
  const text = await readBody(request)
  const body = parseObject(text)
  requireKnown(body, 'parameters input', 'an execution')
  const parameters = { ...agent.parameters, ...textsOf(body.parameters, 'parameters') }
  if (body.input !== undefined) parameters.question = requireText(body.input, '[input] takes a text here')
  const searches = agent.tools.filter(({ type }) => type !== 'MLModelTool').length
  await countMore(call, searches)
  return paced(call, async (gone) => {
    const execution = { call, gone, agent, parameters, text }
    const output = agent.type === 'conversational' ? await converse(execution) : await flow(execution)
    return { inference_results: [{ output }] }
  })
}

async function flow(execution: Execution): Promise<Json[]> {
  const { agent, parameters, call } = execution
  const { tools, type, memory, app_type: appType } = agent
  if (type === 'flow' || memory === undefined || appType === undefined) {
    const outputs = await runTools(tools, parameters, execution)
    return outputs.length === 1 ? [{ ...outputs[0], name: 'response' }] : shownOf(outputs, execution)
  }
  const input = needed(parameters, 'question')
  const { row, asker } = await memoryOf(execution, 'conversations:create')
  await requireTrusted(call, row)
  const before = await stored.listMessages(call.env, row.id, 'desc', {
    limit: number(parameters, 'message_history_limit', MESSAGES),
    offset: 0,
  })
  const said = before
    .toReversed()
    .flatMap(({ input, response }) => (response ? `Human: ${input}\nAssistant: ${response}\n` : []))
  const history = said.length > 0 && { chat_history: `Chat history, oldest first:\n${said.join('')}` }
  const outputs = await runTools(tools, { ...parameters, ...history }, execution)
  const response = outputs.at(-1)!.result
  const turn = await stored.addMessage(call.env, asker, row, { input, response, more: {} })
  for (const [at, { name, result }] of outputs.entries()) {
    const trace = { origin: name, input, response: result, trace_number: at + 1 }
    await stored.addTraceTo(call.env, row.id, turn, trace)
  }
  return [
    { name: 'memory_id', result: row.id },
    { name: 'parent_interaction_id', result: messageIdOf({ memoryId: row.id, turn }) },
    ...shownOf(outputs, execution),
  ]
}

/** The last tool's reply, and those that the agent or the request wants besides. */
const shownOf = (outputs: Json[], { agent, parameters }: Execution): Json[] =>
  outputs.filter((_, at) => {
    const { include_output_in_agent_response: isWanted } = agent.tools[at]!
    return at === outputs.length - 1 || isWanted || isOn(parameters.verbose)
  })

/** The memory that the request names, or another one. @throws ApiError */
async function memoryOf({ call, agent, parameters }: Execution, action: string) {
  await requireMemory(call.env)
  const asker = await askerFor(call, action)
  const more = agent.app_type !== undefined && { application_type: agent.app_type }
  const id =
    parameters.memory_id ??
    (await stored.createMemory(call.env, asker, { name: parameters.question ?? null, ...more }))
  return { asker, row: await openMemory(call, asker, id, 2) }
}

/** A turn with the agent's searches, which its model may make again. */
async function converse(execution: Execution): Promise<Json[]> {
  const { call, gone, agent, parameters, text } = execution
  const { env, access, request, record, prefetch } = call
  const question = needed(parameters, 'question')
  const { model_id: id, parameters: own } = agent.llm!
  const known = await findOpenModel(env, [access], id)
  if (known === undefined) throw statusError(404, MODEL.missing(id))
  const prompt = parameters.system_prompt ?? own.system_prompt
  const model = prompt === undefined ? known : { ...known, system_prompt: prompt }
  const admission = await admitTurn(
    { env, request, record, accesses: [access], userId: undefined, body: text },
    model,
  )
  const found = await mapFew(agent.tools, AT_ONCE, async (tool) => {
    const given = givenTo(tool, parameters)
    const asked = {
      query_by: needed(given, 'embedding_field'),
      include_fields: ['id', ...namesIn(needed(given, 'source_field'))].join(','),
      per_page: String(number(given, 'doc_size', 2)),
    }
    const opened = await openFor(call, needed(given, 'index'))
    return mapFew(opened, AT_ONCE, ({ index }) =>
      planSearch(env, access, index.name, override(asked, access.embedded)),
    )
  })
  const searches = found.flat()
  requireFewSearches(access, searches.length)
  requireFewConditions(searches)
  const tools = agent.tools.map(
    (tool, at): Tool => ({
      ...SEARCH_TOOL,
      name: calledName(nameOf(tool)),
      title: nameOf(tool),
      ...(tool.description !== undefined && { description: tool.description }),
      collections: found[at]!.map(({ collection }) => collection),
    }),
  )
  const memory = agent.memory && (await memoryOf(execution, 'conversations:get')).row
  const turn = {
    question: contentOf(question),
    model,
    historyId: memory?.historyId ?? '',
    searches,
    onSearchError: 'fail' as const,
    protocol: 'opensearch',
    ...(tools.length > 0 && { tools }),
    // A guardrail judges what the request may have put into the prompt.
    ...(parameters.system_prompt !== undefined && { instructions: [parameters.system_prompt] }),
    ...admission,
  }
  if (memory === undefined) {
    const { events, words } = await askOnce(env, turn)
    return [responseOf(await wholeTurn(eventReader(events, undefined, words)))]
  }
  const chat = { conversationId: memory.id, named: true, begun: begunOf(memory) }
  const asked = await ask(env, { ...turn, chat }, { prefetch, signal: gone })
  const answered = await wholeTurn(eventReader(asked.events, asked.resume, asked.words))
  return [
    { name: 'memory_id', result: memory.id },
    {
      name: 'parent_interaction_id',
      result: messageIdOf({ memoryId: memory.id, turn: answered.turn }),
    },
    ...(isOn(parameters.verbose) ? resultsOf(answered) : []),
    responseOf(answered),
  ]
}

const responseOf = ({ answer }: Turn): Json => ({
  name: 'response',
  dataAsMap: { response: textOf(answer), additional_info: {} },
})

/** What the model's calls replied. */
const resultsOf = ({ answer }: Turn): Json[] =>
  answer.flatMap((part) => (part.type === 'tool_result' ? [{ name: 'response', result: part.text }] : []))

/** The tools of agents, or the one of the path. @throws ApiError 404 */
function tools({ path }: Call): Json | Json[] {
  const all = Object.entries(TOOLS).map(([type, [description]]) => ({
    name: type,
    type,
    version: '1',
    description,
  }))
  if (path.id === undefined) return all
  const tool = all.find(({ type }) => type === path.id)
  if (tool === undefined)
    throw statusError(404, `Failed to find tool information with the provided tool name: ${path.id}`)
  return tool
}

export const agentRoutes: RouteRow[] = [
  ['GET', `${ML}/tools`, may('list'), tools],
  ['GET', `${ML}/tools/:id`, may('list'), tools],
  ['POST', `${ML}/agents/_register`, may('create'), register],
  ...found('agents', AGENT),
  ['PUT', `${ML}/agents/:id`, may('upsert'), update],
  ['DELETE', `${ML}/agents/:id`, may('delete'), (call) => removed(call, AGENT)],
  ['POST', `${ML}/agents/:id/_execute`, may('create'), executeAgent],
]
