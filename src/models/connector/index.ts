/**
 * `connector/<model>`: a model that is called by the templates of a connector (OpenSearch's ML plugin). The templates
 * define the request. The beginning of the model's name decides how the prompt is sent and where the answer is read:
 * `bedrock/`, `bedrock-converse/` and `cohere/`, else chat completions as OpenAI has them.
 */
import { AwsV4Signer } from 'aws4fetch'
import { ApiError, badRequest } from '../../errors'
import { maskSecret, withoutSecrets } from '../../lib/mask'
import type { Picture } from '../../lib/parts'
import { type CallOptions, ProviderCall, parseObject, silenceOf, textCall, type Wording } from '../call'
import { type Egress, requireAllowed } from '../egress'
import {
  type ChatMessage,
  type ConversationModelConfig,
  chatMessages,
  type Delta,
  type GenerationRequest,
  type LanguageModelProvider,
} from '../language-model'
import { readStream, readWhole } from '../openai-compatible'
import { Reply } from '../reply'
import { modelId } from '../sampling'

/** How a model is called. `url`, `headers` and `body` are templates. */
export interface Connector {
  protocol: 'http' | 'aws_sigv4'
  url: string
  method: string
  headers: Record<string, string>
  /** absent: the parameters are sent as a JSON object */
  body?: string
  parameters: Values
  /** in clear: crosses an RPC border only, is never logged or stored */
  credential: Record<string, string>
  /** what a URL has to match besides the egress rules; absent: those rules alone decide */
  trusted?: string[]
}

const WORDING: Wording = {
  failure: (detail) => detail,
  unreadable: (detail) => `Error from remote service: ${detail}`,
  timeout: 'Timeout waiting for task.',
  malformed: 'Unknown error or response.',
}

const LONGEST_URL = 2_048
const SENSITIVE = /^(?:proxy-)?authorization$|^cookie$|api-?key|token|secret/i
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Whether a header carries a credential. Parameters of a request must not go into such a header. */
export const isSensitiveHeader = (name: string): boolean => SENSITIVE.test(name)

/**
 * The URL that a connector calls.
 * @param given parameters of the request, before the connector's own
 * @throws ApiError 400 for a URL that may not be called, and if the request's parameters change the host: only the
 *   connector's owner decides who gets the credentials
 */
export function urlOf(connector: Connector, given: Values, env: Egress): string {
  const { url: template, parameters, trusted } = connector
  const url = fillText(template, { ...parameters, ...given })
  try {
    if (url.length > LONGEST_URL) throw badRequest('The URL is too long.')
    requireAllowed(url, trusted === undefined ? withoutStar(env) : env)
    const isTrusted =
      trusted === undefined || trusted.some((pattern) => new RegExp(`^(?:${pattern})$`).test(url))
    if (!isTrusted) throw badRequest('No pattern of the setting fits it.')
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const told = `Connector URL is not matching the trusted connector endpoint regex, URL is: ${url.slice(0, LONGEST_URL)}. ${error.message}`
    throw new ApiError(400, told, undefined, true)
  }
  const own = Object.keys(given).length === 0 ? url : ownUrl(connector)
  if (own === undefined || new URL(own).origin !== new URL(url).origin) {
    throw badRequest('The parameters of a request may not change the host that a connector calls.')
  }
  return url
}

/**
 * Removes `*` from the allowed hosts. In the deployment's variable it applies to models that an operator creates.
 * Connectors need hosts by name, or the setting's patterns.
 */
const withoutStar = ({ ALLOWED_HOSTS = '' }: Egress): Egress => ({
  ALLOWED_HOSTS: ALLOWED_HOSTS.split(',')
    .filter((entry) => entry.trim() !== '*')
    .join(','),
})

/** The URL filled with the connector's own parameters alone. The request may still fill parts of its path. */
function ownUrl({ url, parameters }: Connector): string | undefined {
  const [base] = /^\w+:\/\/[^/]+/.exec(url) ?? []
  for (const template of base === undefined ? [url] : [url, base]) {
    try {
      return new URL(fillText(template, parameters)).href
    } catch {
      // Try the next one, which fixes less of the URL and needs fewer parameters.
    }
  }
  return undefined
}

function headersOf({ headers, parameters, credential }: Connector, given: Values): Record<string, string> {
  const all = { ...parameters, ...given }
  return Object.fromEntries(
    Object.entries(headers).map(([name, template]) => {
      const value = fillText(template, isSensitiveHeader(name) ? parameters : all, credential)
      if (!HEADER_VALUE.test(value)) throw badRequest(`Header '${name}' has a value that no header can have.`)
      return [name, value]
    }),
  )
}

const bodyOf = ({ body, parameters }: Connector, given: Values): Record<string, unknown> => {
  const all: Values = { ...parameters, ...given }
  if (body === undefined) return { ...all }
  return fillJson(body, all, String(parameters.skip_validating_missing_parameters) === 'true')
}

/**
 * Fills the templates of a connector.
 * @param given parameters of the request
 * @param more of the body
 * @returns what calls it @throws ApiError 400
 */
function filled(connector: Connector, given: Values, env: Egress, more: Values = {}) {
  const url = urlOf(connector, given, env)
  const headers = headersOf(connector, given)
  const body = { ...bodyOf(connector, given), ...more }
  return (call: ProviderCall) => call.fetch(url, () => requestOf(connector, url, headers, body))
}

async function requestOf(
  connector: Connector,
  url: string,
  headers: Record<string, string>,
  body: unknown,
): Promise<RequestInit> {
  const { method, protocol, credential, parameters } = connector
  const init = {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(method !== 'GET' && { body: JSON.stringify(body) }),
  }
  if (protocol === 'http') return init
  const signer = new AwsV4Signer({
    ...init,
    url,
    accessKeyId: credential.access_key!,
    secretAccessKey: credential.secret_key!,
    ...(credential.session_token !== undefined && { sessionToken: credential.session_token }),
    service: String(parameters.service_name ?? 'bedrock'),
    region: String(parameters.region ?? credential.region ?? ''),
  })
  return { ...init, headers: (await signer.sign()).headers }
}

/** Seconds of silence that a call by parameters is allowed. */
const SILENCE = 30
/** A shorter value is not a credential, and removing it from errors would garble them. */
const SHORTEST_SECRET = 4

const optionsOf = (connector: Connector, silence: number, env: Cloudflare.Env): CallOptions => ({
  wording: WORDING,
  silence,
  secrets: secretsOf(connector),
  env,
})

const secretsOf = ({ credential }: Connector): string[] =>
  Object.values(credential).filter((value) => value.length >= SHORTEST_SECRET)

/**
 * Calls a connector with the request's parameters.
 * @returns the provider's own reply, an object
 * @throws ApiError 400 for a template that cannot be filled or a host that may not be called; ProviderError
 */
export async function predict(
  connector: Connector,
  parameters: Values,
  env: Cloudflare.Env,
  signal?: AbortSignal,
): Promise<Record<string, unknown>> {
  const send = filled(connector, parameters, env)
  const call = new ProviderCall(optionsOf(connector, SILENCE, env), signal)
  const text = withoutSecrets(await call.text(await send(call)), secretsOf(connector))
  return parseObject(text) ?? { response: text }
}

/**
 * Calls a connector and streams the reply. The request asks for a stream of chat completions; a whole reply is one
 * piece.
 * @returns the pieces of the text
 * @throws as `predict` does
 */
export async function* predictPieces(
  connector: Connector,
  parameters: Values,
  env: Cloudflare.Env,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const send = filled(connector, parameters, env, { stream: true })
  const call = textCall(optionsOf(connector, SILENCE, env), signal)
  for await (const delta of chatDeltas(connector, call, await send(call))) {
    if (delta.type === 'text') yield delta.text
  }
}

/** Deltas of chat completions. The server decides whether it streams them. */
async function* chatDeltas(
  connector: Connector,
  call: ProviderCall,
  response: Response,
): AsyncGenerator<Delta> {
  const isEvents = (response.headers.get('content-type') ?? '').includes('text/event-stream')
  if (isEvents) yield* masked(readStream(call, call.events(response.body)), secretsOf(connector))
  else yield* readWhole(call, withoutSecrets(await call.text(response), secretsOf(connector)))
}

/** How a family of models takes its prompt, and where its reply has the answer. */
interface Form {
  parameters(messages: ChatMessage[], model: string): Values
  /** undefined: chat completions */
  answer?: (reply: Record<string, unknown>) => unknown
}

function single(messages: ChatMessage[]): Values {
  if (messages.some(({ pictures = [] }) => pictures.length > 0))
    throw badRequest('The prompt of this model is one text, which has no place for pictures.')
  return { inputs: messages.map(({ content }) => `${content}\n`).join('') }
}

const PREFIXED: Record<string, Form> = {
  bedrock: { parameters: single, answer: (reply) => reply.completion },
  cohere: { parameters: single, answer: (reply) => reply.text },
  'bedrock-converse': {
    parameters: (messages) => {
      const system = messages.filter(({ role }) => role === 'system').map(({ content }) => content)
      const said = messages
        .filter(({ role }) => role !== 'system')
        .map(({ role, content, pictures = [] }) => ({
          role,
          content: [{ text: content }, ...pictures.map(imageBlock)],
        }))
      return { messages: said, ...(system.length > 0 && { system_prompt: system.join('\n') }) }
    },
    answer: (reply) => {
      const output = reply.output as { message?: { content?: { text?: unknown }[] } } | undefined
      return output?.message?.content?.[0]?.text
    },
  },
}

const imageBlock = ({ media_type, data }: Picture) => ({
  image: { format: media_type.replace('image/', ''), source: { bytes: data } },
})

const CHAT: Form = { parameters: (messages, model) => ({ model, messages: chatMessages({ messages }) }) }

const formOf = ({ llm_response_field: field }: ConversationModelConfig, model: string): Form =>
  typeof field === 'string'
    ? { parameters: single, answer: (reply) => reply[field] }
    : (PREFIXED[model.slice(0, Math.max(0, model.indexOf('/')))] ?? CHAT)

async function* generate(
  config: ConversationModelConfig,
  env: Cloudflare.Env,
  request: GenerationRequest,
  signal: AbortSignal,
): AsyncGenerator<Delta> {
  const connector = connectorOf(config)
  const model = modelId(config.model_name)
  const form = formOf(config, model)
  const parameters = form.parameters(request.messages, model)
  const stream = request.stream && form.answer === undefined
  const send = filled(connector, parameters, env, stream ? { stream } : {})
  const call = textCall(optionsOf(connector, silenceOf(config), env), signal)
  const response = await send(call)
  if (form.answer === undefined) return yield* chatDeltas(connector, call, response)
  const text = withoutSecrets(await call.text(response), secretsOf(connector))
  yield* readField(call, text, form.answer)
}

function* readField(call: ProviderCall, text: string, answer: NonNullable<Form['answer']>): Generator<Delta> {
  const parsed = parseObject(text)
  const said = parsed && answer(parsed)
  if (typeof said !== 'string' || said === '') {
    if (parsed?.error !== undefined && parsed.error !== null) throw call.reported(text)
    throw call.malformed()
  }
  const reply = new Reply(call, { whole: true })
  reply.any = true
  yield* reply.said(said)
  reply.finish = 'stop'
  yield* reply.end()
}

function connectorOf({ connector }: ConversationModelConfig): Connector {
  if (typeof connector !== 'object' || connector === null) throw badRequest(NO_CONNECTOR)
  return connector as Connector
}

const NO_CONNECTOR =
  'A `connector/` model has a connector: register it by `POST /_plugins/_ml/models/_register`, which gives it its id.'

/** Models of this namespace are registered through OpenSearch's API, and are never stored as conversation models. */
export const connector: LanguageModelProvider = {
  namespace: 'connector',
  validate() {
    throw badRequest(NO_CONNECTOR)
  },
  destination: (config) => connectorOf(config).url,
  probe: async () => {},
  generate,
}

// =============================================================================
// Templates of connectors: `${parameters.x}`, `${parameters.x:-default}` and `${credential.x}`.
//
// A template is filled in one pass. Values are never searched for placeholders, so that a question cannot read a
// connector's parameters.

/** Characters of a template that is filled in: a value may be long and stand in many places. */
export const LONGEST_FILLED = 8_000_000

type Values = Readonly<Record<string, unknown>>

const PLACEHOLDER = /\$\{(parameters|credential)\.([\w.-]+?)(?::-([^}]*))?\}/g

/** Names that a template asks for. */
export const namesIn = (template: string, group: 'parameters' | 'credential'): string[] =>
  [...template.matchAll(PLACEHOLDER)].flatMap(([, found, name]) => (found === group ? [name!] : []))

/**
 * Fills a URL, a header or a prompt.
 * @throws ApiError 400 for a placeholder that nothing fills, and past LONGEST_FILLED
 */
export function fillText(template: string, parameters: Values, credential: Values = {}): string {
  const missing: string[] = []
  let length = template.length
  const filled = template.replace(PLACEHOLDER, (_, group, name, otherwise) => {
    const values: Values = group === 'parameters' ? parameters : credential
    const value = Object.hasOwn(values, name) ? values[name] : otherwise
    if (value === undefined) missing.push(name)
    const text = textOf(value)
    length += text.length
    requireShort(length)
    return text
  })
  requireFilled(missing)
  return filled
}

/**
 * Fills a body that is JSON with placeholders in it. Inside a string, a value is inserted as escaped text. Elsewhere
 * it is inserted as JSON: text that is valid JSON as it is, other text as a string. So no value can end the string
 * around it.
 * @param lenient leave placeholders that nothing fills
 * @throws ApiError 400 for a placeholder that nothing fills, if the result is not JSON, and past LONGEST_FILLED
 */
export function fillJson(template: string, parameters: Values, lenient = false): Record<string, unknown> {
  const missing: string[] = []
  let filled = ''
  let end = 0
  let inString = false
  for (const match of template.matchAll(PLACEHOLDER)) {
    const [whole, group, name, otherwise] = match
    const before = template.slice(end, match.index)
    inString = endsInString(before, inString)
    filled += before
    end = match.index + whole.length
    const given = group === 'parameters' && Object.hasOwn(parameters, name!) ? parameters[name!] : undefined
    const value = given ?? otherwise
    if (value === undefined) {
      if (lenient) filled += inString ? escaped(whole) : JSON.stringify(whole)
      else missing.push(name!)
    } else if (given === undefined && otherwise === 'null' && inString && isAlone(filled, template, end)) {
      // "${parameters.x:-null}" gives null, not the string "null".
      filled = `${filled.slice(0, -1)}null`
      end += 1
      inString = false
    } else filled += inString ? escaped(textOf(value)) : jsonOf(value)
    requireShort(filled.length)
  }
  requireFilled(missing)
  return parse(filled + template.slice(end))
}

const isAlone = (filled: string, template: string, end: number): boolean =>
  filled.endsWith('"') && template[end] === '"'

function endsInString(text: string, inString: boolean): boolean {
  let inside = inString
  for (let at = 0; at < text.length; at++) {
    if (inside && text[at] === '\\') at++
    else if (text[at] === '"') inside = !inside
  }
  return inside
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value ?? ''))

const escaped = (text: string): string => JSON.stringify(text).slice(1, -1)

function jsonOf(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value)
  try {
    JSON.parse(value)
    return value
  } catch {
    return JSON.stringify(value)
  }
}

function parse(text: string): Record<string, unknown> {
  try {
    const body: unknown = JSON.parse(text)
    if (typeof body === 'object' && body !== null) return body as Record<string, unknown>
  } catch {
    // Reported below. The parser's own message would quote the prompt.
  }
  throw badRequest('Invalid payload: the request_body of the connector is no JSON when it is filled in.')
}

function requireShort(length: number): void {
  if (length > LONGEST_FILLED)
    throw badRequest(
      `Filled in, the template is longer than ${LONGEST_FILLED} characters: shorten what is put into it.`,
    )
}

function requireFilled(missing: string[]): void {
  if (missing.length === 0) return
  const names = [...new Set(missing)].join(', ')
  throw badRequest(`Some parameter placeholder not filled in payload: ${names}`)
}

// =============================================================================
// Masks secrets in a text that arrives in pieces.

/** Holds back text that may be the beginning of a secret until the next piece decides. */
export class Masking {
  readonly #secrets: readonly string[]
  #held = ''

  /** @param secrets none of them empty */
  constructor(secrets: readonly string[]) {
    // Longest first. Otherwise a secret that is the beginning of another one would match first and leave the rest of
    // that one visible.
    this.#secrets = [...secrets].sort((a, b) => b.length - a.length)
  }

  /** @returns the text that is safe to show now */
  add(piece: string): string {
    const text = this.#masked(this.#held + piece)
    const held = this.#beginning(text)
    this.#held = text.slice(text.length - held)
    return text.slice(0, text.length - held)
  }

  /** @returns the text that was held back, since it did not become a secret */
  end(): string {
    const held = this.#held
    this.#held = ''
    return held
  }

  #masked(text: string): string {
    return this.#secrets.reduce((shown, secret) => shown.replaceAll(secret, maskSecret(secret)), text)
  }

  /** Length of the longest end of the text that begins a secret. */
  #beginning(text: string): number {
    return Math.max(0, ...this.#secrets.map((secret) => overlap(text, secret)))
  }
}

function overlap(text: string, secret: string): number {
  for (let length = Math.min(secret.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(secret.slice(0, length))) return length
  }
  return 0
}

/** A stream of deltas whose texts show no secret. Thoughts are never shown. */
export async function* masked(
  deltas: AsyncIterable<Delta>,
  secrets: readonly string[],
): AsyncGenerator<Delta> {
  if (secrets.length === 0) return yield* deltas
  const masking = new Masking(secrets)
  const rest = function* (): Generator<Delta> {
    const text = masking.end()
    if (text !== '') yield { type: 'text', text }
  }
  for await (const delta of deltas) {
    if (delta.type === 'finish') yield* rest()
    if (delta.type !== 'text') yield delta
    else {
      const text = masking.add(delta.text)
      if (text !== '') yield { type: 'text', text }
    }
  }
  yield* rest()
}
