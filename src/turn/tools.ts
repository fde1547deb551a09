/**
 * Calls of tools within a turn. The answering model asks for them, the turn runs them and asks again, until the model answers
 * without a call.
 *
 * A call that needs the visitor's leave, or that runs on their page, ends the turn. Nothing waits meanwhile, and no connection is
 * held: the call is stored with the answer so far. What the visitor decides comes as another turn in its place, which searches anew,
 * goes on from the calls, and holds both answers.
 *
 * What a tool replies is as untrusted as a document: it is cut, and goes to the model as the result of a call alone.
 */
import { ApiError, coded, logFailure } from '../errors'
import { Gate, mapFew } from '../lib/few'
import { parseShallow, tryJson } from '../lib/json'
import { once } from '../lib/once'
import { addText, type Part, type ToolCallPart, type ToolResultPart, textOf } from '../lib/parts'
import { settlesWithin } from '../lib/waiting'
import { argumentsOf, type ChatMessage, type GenerationRequest, type Source } from '../models/language-model'
import { namespaceOf, providerOf } from '../models/providers'
import { MOST_CALLS } from '../models/reply'
import type { Tool } from '../tools/tool'
import { allFailed } from './fold'
import { requireForm } from './form'
import { passagesOf } from './passage'
import { familyOf, fencedDocuments, fitSources } from './prompt'
import type { AskRequest, PlannedSearch, Resumption } from './request'
import { orderOf, type Retrieved, retrieve, SEARCHES_AT_ONCE, sourcesOf } from './retrieve'
import type { Generated, TracedPorts } from './trace'

/** How often a turn asks the model, calls in between. */
const MOST_STEPS = 6
/** Calls of one step that run at once. */
const AT_ONCE = 4
/** Searches of a turn's tools, in all collections together. */
const MOST_SEARCHES = 32
/** How long a tool may take, in milliseconds. */
const TOOL_MS = 30_000
/** UTF-16 units of a result that a model is told. */
const LONGEST_RESULT = 16_000
/** Bytes that a search is worth running for. */
const SMALLEST_RESULT = 300
/** How long a call waits for its visitor, in milliseconds. */
export const WAITING_MS = 15 * 60_000

/** The calls in an answer that wait for the visitor. */
export function waitingIn(content: readonly Part[]): ToolCallPart[] {
  const replied = new Set(content.flatMap((part) => (part.type === 'tool_result' ? [part.id] : [])))
  return content.filter(
    (part): part is ToolCallPart => part.type === 'tool_call' && !!part.awaits && !replied.has(part.id),
  )
}

const failed = (id: string, text: string): ToolResultPart => ({ type: 'tool_result', id, text, failed: true })

const REFUSED = 'The visitor did not allow this.'
const UNASKED = 'This needs the leave of the visitor, who cannot be asked here. It was not done.'
const UNKNOWN =
  'The server was interrupted. It is not known whether this was done: say so, and do not try again.'

/** The tools of one turn. */
export class ToolSteps {
  /** what was written, called and replied so far, in order */
  readonly content: Part[] = []
  readonly #request: AskRequest
  readonly #tools: readonly Tool[]
  readonly #ports: TracedPorts
  readonly #signal: AbortSignal
  /** the documents of the prompt. What tools find joins them */
  readonly #sources: Source[]
  /** names of the tools that the visitor allowed for the whole conversation */
  readonly #allowed: () => ReadonlySet<string>
  /** UTF-16 units that results may still take */
  #room: number
  readonly #searching = new Gate(SEARCHES_AT_ONCE)
  #searches = 0
  /** what each search of this step may take of that: half of it in equal parts, so that another step has room */
  #share = 0
  #steps = 0
  #waits = false

  /** @param said earlier messages of this conversation */
  constructor(
    request: AskRequest,
    sources: Source[],
    said: readonly { content: readonly Part[] }[],
    ports: TracedPorts,
    signal: AbortSignal,
  ) {
    this.#request = request
    // The built-in model reads no prompt, so it could call nothing.
    this.#tools = namespaceOf(request.model.model_name) === 'local' ? [] : (request.tools ?? [])
    this.#sources = sources
    this.#ports = ports
    this.#signal = signal
    this.#allowed = once(() => doneIn(said.flatMap(({ content }) => content)))
    this.#room = Math.max(LONGEST_RESULT, request.model.max_bytes)
  }

  /** Whether there are any tools. */
  get any(): boolean {
    return this.#tools.length > 0
  }

  /** Whether a call waits for the visitor. */
  get waits(): boolean {
    return this.#waits
  }

  /** Whether its text has to be looked through for calls, because its provider has no other way to call. */
  get #isText(): boolean {
    const { model } = this.#request
    return this.any && (!providerOf(model).callsTools || model.tool_calls === 'text')
  }

  /** Adds to the answer's text. */
  write(text: string): void {
    addText(this.content, text)
  }

  /** What a generation needs for the tools to be called. */
  offer(messages: ChatMessage[]): Pick<GenerationRequest, 'messages' | 'tools' | 'mustAnswer'> {
    // A provider refuses messages with calls where no tool is named: these may have been removed since.
    if (!this.any) return { messages: this.#request.resumes ? asText(messages, []) : messages }
    const mustAnswer = (this.#steps >= MOST_STEPS || this.#room <= 0) && { mustAnswer: true as const }
    if (this.#isText) return { messages: asText(messages, mustAnswer ? [] : this.#tools) }
    const tools = this.#tools.map(({ name, description, parameters }) => ({ name, description, parameters }))
    return { messages, tools, ...mustAnswer }
  }

  /** A reply with its calls. @param show is given its text, where that was not shown piece by piece */
  read(reply: Generated, show: (text: string) => void): Generated {
    if (!this.#isText) return reply
    const { text, calls } = callsIn(reply.text)
    show(text)
    return { ...reply, text, ...(calls.length > 0 && { calls }) }
  }

  /** What is called for the pieces of a reply. */
  shown(show: (text: string) => void): (text: string) => void {
    return this.#isText ? () => {} : show
  }

  /** Goes on from what was done before. @returns the messages that say so */
  async resume(): Promise<ChatMessage[]> {
    const { resumes } = this.#request
    if (!resumes) return []
    const waiting = waitingIn(resumes.content)
    const said = resumes.content.map((part) => (part.type === 'tool_call' ? withoutWaiting(part) : part))
    this.#ports.emit({ type: 'resumed', content: said })
    this.content.push(...said)
    const results = await mapFew(waiting, AT_ONCE, (call) => this.#decide(call, resumes))
    for (const result of results) this.#add(result)
    return messagesOf(this.content)
  }

  /**
   * Runs the calls of a reply.
   * @returns the messages that tell the model of them; undefined: it has answered, or a call waits
   */
  async take({ text, calls }: Generated): Promise<ChatMessage[] | undefined> {
    if (!calls || !this.any || this.#steps >= MOST_STEPS) return undefined
    this.#steps += 1
    const known = calls.slice(0, MOST_CALLS).map((call) => this.#known(call))
    this.#room -= known.reduce((sum, call) => sum + call.arguments.length, 0)
    for (const call of known) this.#add(call)
    const together = known.filter((call) => this.#toolOf(call)?.runs === 'search').length
    this.#share = Math.floor(this.#room / (2 * together))
    const results = await mapFew(
      known.filter(({ awaits }) => !awaits),
      AT_ONCE,
      (call) => this.#run(call),
    )
    for (const result of results) this.#add(result)
    this.#waits = known.some(({ awaits }) => awaits)
    if (this.#waits) return undefined
    return [
      { role: 'assistant', content: text, calls: known },
      { role: 'user', content: '', results },
    ]
  }

  /** The error for a model that goes on calling tools. */
  endless(): ApiError {
    return coded(
      'model_failed',
      400,
      `The model called tools ${MOST_STEPS} times and gave no answer. Ask again.`,
    )
  }

  #add(part: ToolCallPart | ToolResultPart): void {
    this.content.push(part)
    this.#ports.emit({ type: 'part', part })
  }

  #toolOf({ name }: ToolCallPart): Tool | undefined {
    return this.#tools.find((tool) => tool.name === name)
  }

  /** A call with what is known of its tool. */
  #known(call: ToolCallPart): ToolCallPart {
    const tool = this.#toolOf(call)
    if (!tool) return call
    const titled = { ...call, title: tool.title }
    if (tool.runs === 'page') return { ...titled, awaits: 'page' }
    return this.#needsLeave(tool) && this.#request.asks ? { ...titled, awaits: 'leave' } : titled
  }

  #needsLeave({ leave, name }: Tool): boolean {
    return leave === 'each' || (leave === 'once' && !this.#allowed().has(name))
  }

  async #decide(call: ToolCallPart, { decided, again }: Resumption): Promise<ToolResultPart> {
    const decision = Object.hasOwn(decided, call.id) ? decided[call.id] : undefined
    if (call.awaits === 'page') {
      if (!decision || !('result' in decision)) return failed(call.id, 'The page gave no result.')
      const { result, failed: isFailed } = decision
      return { type: 'tool_result', id: call.id, text: this.#cut(result), ...(isFailed && { failed: true }) }
    }
    if (!decision || !('allow' in decision) || !decision.allow) return failed(call.id, REFUSED)
    // A booking that may have been made must not be made twice.
    if (again && !this.#toolOf(call)?.readOnly) return failed(call.id, UNKNOWN)
    return this.#run(call, true)
  }

  /** Runs a call, in time. Never throws but for a stop. */
  async #run(call: ToolCallPart, isAllowed = false): Promise<ToolResultPart> {
    const tool = this.#toolOf(call)
    if (!tool) return failed(call.id, `There is no tool \`${call.name}\`.`)
    if (!isAllowed && this.#needsLeave(tool)) return failed(call.id, UNASKED)
    const late = new AbortController()
    const signal = AbortSignal.any([this.#signal, late.signal])
    try {
      const form = { type: 'schema' as const, name: tool.name, schema: tool.parameters }
      // An MCP server checks them itself, by a schema that may be too much work here.
      if (tool.source?.name === undefined) await requireForm(form, { text: call.arguments, finish: 'stop' })
      const running = this.#reply(tool, call, signal)
      running.catch(() => {})
      if (!(await settlesWithin(TOOL_MS, running))) {
        late.abort()
        return failed(call.id, `It did not reply within ${TOOL_MS / 1000} seconds.`)
      }
      const result = await running
      const text = this.#cut(result.text)
      if (tool.runs === 'server' && !result.failed) {
        // An answer's sentences are compared with what a result says, and not with its JSON.
        const said = tryJson(text, parseShallow) ?? text
        this.#sources.push({ collection: '', document: { tool: tool.title, result: said } })
      }
      return { ...result, text }
    } catch (error) {
      this.#signal.throwIfAborted()
      if (error instanceof ApiError) return failed(call.id, error.message)
      const { requestId, conversationId } = this.#request
      logFailure(`the tool ${tool.name} failed`, error, { requestId, conversation: conversationId })
      return failed(call.id, 'It failed through a fault of the server.')
    }
  }

  #reply(tool: Tool, call: ToolCallPart, signal: AbortSignal): Promise<ToolResultPart> {
    const { query, id } = argumentsOf(call)
    if (tool.runs === 'search') return this.#search(tool, call, String(query))
    if (tool.runs === 'document')
      return this.#search(tool, call, '*', `id:=\`${String(id).replaceAll('`', '')}\``)
    return this.#ports.callTool?.(call, signal) ?? Promise.resolve(failed(call.id, 'It cannot run here.'))
  }

  /** Searches as the turn did. What is found can be cited. @param filter of its own, beside that of each search */
  async #search(
    { collections }: Tool,
    { id }: ToolCallPart,
    q: string,
    filter?: string,
  ): Promise<ToolResultPart> {
    const { model, labels, searches: all } = this.#request
    const own = collections ? all.filter(({ collection }) => collections.includes(collection)) : all
    const searches = own.map((search) => {
      const both = [search.params.filter_by, filter].filter(Boolean).map((each) => `(${each})`)
      return filter ? { ...search, params: { ...search.params, filter_by: both.join(' && ') } } : search
    })
    if (this.#searches > 0 && this.#searches + searches.length > MOST_SEARCHES) {
      return failed(id, 'Enough has been searched for this question. Answer from what was found.')
    }
    this.#searches += searches.length
    const searchOne = async (search: PlannedSearch): Promise<Retrieved[]> =>
      (await retrieve([search], q, this.#ports)).map((each) => ({
        ...each,
        summary: { ...each.summary, q: filter ?? q },
      }))
    const bytes = Math.min(model.max_bytes, LONGEST_RESULT, filter ? this.#room : this.#share)
    if (bytes < SMALLEST_RESULT) return failed(id, 'There is no room for more. Answer from what was found.')
    const found = (
      await Promise.all(searches.map((search) => this.#searching.pass(() => searchOne(search))))
    ).flat()
    const summaries = found.map(({ summary }) => summary)
    if (allFailed({ summaries })) return failed(id, 'The search failed.')
    // A document that is asked for by its id is told even if the prompt has it.
    const shown = new Set(filter ? [] : this.#sources.map(({ document }) => JSON.stringify(document)))
    const known = sourcesOf(found, labels)
    const lists = known.map((list) => list.filter(({ document }) => !shown.has(JSON.stringify(document))))
    const { sources } = fitSources(lists, q, bytes, familyOf(model.model_name), orderOf(searches))
    this.#sources.push(...sources)
    this.#ports.emit({ type: 'results', replies: found.map(({ reply }) => reply) })
    this.#ports.emit({ type: 'retrieval', passages: passagesOf(sources), searches: summaries })
    const isKnown = lists.flat().length === 0 && known.flat().length > 0
    const text = isKnown ? 'It found only what you have already.' : fencedDocuments(sources)
    return { type: 'tool_result', id, text }
  }

  #cut(text: string): string {
    const most = Math.max(0, Math.min(LONGEST_RESULT, this.#room))
    this.#room -= Math.min(most, text.length)
    return text.length > most ? `${text.slice(0, most)}\n(cut)` : text
  }
}

function withoutWaiting({ awaits: _, ...call }: ToolCallPart): ToolCallPart {
  return call
}

/** Names of the tools that ran to their end. Those that need leave once had it then. */
function doneIn(content: readonly Part[]): Set<string> {
  const done = new Set(
    content.flatMap((part) => (part.type === 'tool_result' && !part.failed ? [part.id] : [])),
  )
  return new Set(
    content.flatMap((part) => (part.type === 'tool_call' && done.has(part.id) ? [part.name] : [])),
  )
}

/** An answer so far as the messages of its model: what it wrote with its calls, and their results. */
function messagesOf(content: readonly Part[]): ChatMessage[] {
  const messages: ChatMessage[] = []
  let begun: { text: string; calls: ToolCallPart[]; results: ToolResultPart[] } | undefined
  for (const part of content) {
    if (part.type !== 'text' && part.type !== 'tool_call' && part.type !== 'tool_result') continue
    if (!begun || (part.type !== 'tool_result' && begun.results.length > 0)) {
      begun = { text: '', calls: [], results: [] }
      const { calls, results } = begun
      messages.push({ role: 'assistant', content: '', calls }, { role: 'user', content: '', results })
    }
    if (part.type === 'text') {
      begun.text += part.text
      messages.at(-2)!.content = begun.text
    } else if (part.type === 'tool_call') begun.calls.push(part)
    else begun.results.push(part)
  }
  return messages
}

// =============================================================================
// Calls as text, for models whose provider has no other way. The model writes `<call>{"name": ..., "arguments": ...}</call>`. Its
// text is shown once it is whole, since a call may stand anywhere in it.

const [BEGIN, END] = ['<call>', '</call>']

const TELLING =
  'You may call tools. To call one, write a line `<call>{"name": "NAME", "arguments": {...}}</call>` and wait: the result comes with the ' +
  'next message. Call a tool only if the question needs it. The tools, with the JSON Schema of their arguments:'

/** Messages in which tools, calls and results are texts. */
function asText(messages: ChatMessage[], tools: readonly Tool[]): ChatMessage[] {
  const told = messages.map(({ calls = [], results, ...message }): ChatMessage => {
    if (results) {
      const texts = results.map(({ text }) => `<result>${JSON.stringify(text)}</result>`)
      return { role: 'user', content: texts.join('\n') }
    }
    const written = calls.map(
      ({ name, arguments: given }) => `<call>{"name": "${name}", "arguments": ${given}}</call>`,
    )
    return { ...message, content: [message.content, ...written].join('\n').trim() }
  })
  if (tools.length === 0) return told
  const specs = tools.map(({ name, description, parameters }) =>
    JSON.stringify({ name, description, parameters }),
  )
  const telling = [TELLING, ...specs].join('\n')
  const [first, ...others] = told
  return first?.role === 'system'
    ? [{ role: 'system', content: `${first.content}\n\n${telling}` }, ...others]
    : [{ role: 'system', content: telling }, ...told]
}

/** The calls in a model's text, and the text without them. */
function callsIn(said: string): { text: string; calls: ToolCallPart[] } {
  const calls: ToolCallPart[] = []
  let text = ''
  let at = 0
  for (let begin = said.indexOf(BEGIN); begin >= 0; begin = said.indexOf(BEGIN, at)) {
    const end = said.indexOf(END, begin)
    if (end < 0) break
    const { name, arguments: given = {} } = argumentsOf({ arguments: said.slice(begin + BEGIN.length, end) })
    const isCall = typeof name === 'string'
    text += said.slice(at, isCall ? begin : end + END.length)
    at = end + END.length
    if (!isCall) continue
    const id = `call_${crypto.randomUUID()}`
    calls.push({ type: 'tool_call', id, name, arguments: JSON.stringify(given) })
  }
  return calls.length === 0 ? { text: said, calls } : { text: (text + said.slice(at)).trim(), calls }
}

/** The parts of an answer whose text was changed after it was written. */
export function contentWith(content: readonly Part[], text: string): Part[] {
  const written = textOf(content)
  const others = text.startsWith(written) ? [...content] : content.filter(({ type }) => type !== 'text')
  addText(others, text.startsWith(written) ? text.slice(written.length) : text)
  return others
}
