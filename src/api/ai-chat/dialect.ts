/**
 * The dialects of the AI Chat Protocol, and how to detect them (contract chat-protocols 1.1 and 1.9). Pure.
 *
 * The protocol has several versions that share names, and clients of all of them exist. What a client sends shows its
 * dialect; a header or the path can also name a version.
 */

export type Dialect =
  /** an OpenAI envelope, as the first document had it */
  | '2024-01-28'
  /** `session_state` */
  | '2024-05-29'
  /** `sessionState`, as Microsoft's npm client has it */
  | '2024-08'
  /** `output_text`, as the Azure Search demo has it since */
  | '2026-04'
  /** the chat component of the Azure Search demo in JavaScript */
  | 'azure-js'
  /** not detected: 2024-05-29 with the keys of all its clients */
  | 'unnamed'

export const VERSIONS = ['2024-01-28', '2024-05-29', '2024-08', '2026-04'] as const satisfies Dialect[]

export const isVersion = (name: string): name is (typeof VERSIONS)[number] =>
  (VERSIONS as readonly string[]).includes(name)

/** The parts of a request that show its dialect. */
export interface Signals {
  /** named by the header or the path */
  version?: (typeof VERSIONS)[number] | undefined
  userAgents: readonly (string | null)[]
  /** {} for a body that is no JSON object */
  body: Readonly<Record<string, unknown>>
}

/** Overrides that only clients of the newest dialect send. */
const NEWEST = ['send_text_sources', 'search_text_embeddings', 'use_agentic_knowledgebase']

export function dialectOf({ version, userAgents, body }: Signals): Dialect {
  if (version) return version
  if ('sessionState' in body || userAgents.some(isClient)) return '2024-08'
  const context = asRecord(body.context)
  if ('session_state' in body) {
    const overrides = asRecord(context.overrides)
    return NEWEST.some((name) => name in overrides) ? '2026-04' : '2024-05-29'
  }
  return 'stream' in body && 'approach' in context ? 'azure-js' : 'unnamed'
}

/** The shape of errors: a text, an object, or what the azure-js component knows. */
export type ErrorForm = 'text' | 'object' | 'fastify'

/** @param asked the query parameter `error_format` */
export function errorFormOf(signals: Signals, asked: string | null = null): ErrorForm {
  const dialect = dialectOf(signals)
  if (asked === 'object' || dialect === '2024-08' || signals.userAgents.some(isClient)) return 'object'
  return dialect === 'azure-js' ? 'fastify' : 'text'
}

/** Whether it is Microsoft's npm client. In browsers it has a header of its own. */
const isClient = (userAgent: string | null): boolean => userAgent?.startsWith('ts-http-runtime/') ?? false

export const asRecord = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {}
