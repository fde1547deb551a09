/**
 * The dialects of the AI Chat Protocol, and which one a request speaks (contract chat-protocols 1.1 and 1.9): pure.
 *
 * The protocol was written down several times under few names, and its clients speak all of it. What a client sends
 * tells it apart; a header or the path can name a version outright.
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
  /** nothing told it apart: 2024-05-29 in words that every client of it reads */
  | 'unnamed'

export const VERSIONS = ['2024-01-28', '2024-05-29', '2024-08', '2026-04'] as const satisfies Dialect[]

export const isVersion = (name: string): name is (typeof VERSIONS)[number] =>
  (VERSIONS as readonly string[]).includes(name)

/** What of a request tells its dialect. */
export interface Signals {
  /** what its header or its path names */
  version?: (typeof VERSIONS)[number] | undefined
  userAgents: readonly (string | null)[]
  /** {} for a body that is no JSON object */
  body: Readonly<Record<string, unknown>>
}

/** Overrides that only front ends of the newest dialect send. */
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

/** How errors are written: a text, an object, or as the azure-js component knows them. */
export type ErrorForm = 'text' | 'object' | 'fastify'

/** @param asked the query parameter `error_format` */
export function errorFormOf(signals: Signals, asked: string | null = null): ErrorForm {
  const dialect = dialectOf(signals)
  if (asked === 'object' || dialect === '2024-08' || signals.userAgents.some(isClient)) return 'object'
  return dialect === 'azure-js' ? 'fastify' : 'text'
}

/** Microsoft's npm client. In browsers it says so in a header of its own. */
const isClient = (userAgent: string | null): boolean => userAgent?.startsWith('ts-http-runtime/') ?? false

export const asRecord = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {}
