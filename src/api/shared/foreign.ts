/**
 * Recognises a body that belongs to another protocol. Most chat clients send `messages`, so the wrong address would often
 * understand enough to run a paid turn, and the client would then fail on the answer.
 */
import { badRequest } from '../../errors'
import { contentOf } from '../../lib/parts'
import type { TranscriptMessage } from '../../turn/look-back'

interface Mark {
  /** labels of turns that this protocol begins */
  protocol: string
  name: string
  /** where it belongs; `*` stands for the assistant */
  route: string
  /** whether only this protocol's clients send such a body */
  fits(body: Record<string, unknown>): boolean
}

const MARKS: Mark[] = [
  {
    protocol: 'agui',
    name: 'AG-UI',
    route: '/agui/*',
    fits: ({ threadId, runId, messages }) =>
      typeof threadId === 'string' && typeof runId === 'string' && Array.isArray(messages),
  },
  {
    protocol: 'a2a',
    name: 'A2A',
    route: '/a2a/*',
    fits: ({ jsonrpc, method }) =>
      // Revision 1.0 has names such as `GetTask`; before it they began with `message/`. MCP's names are all small.
      jsonrpc === '2.0' && typeof method === 'string' && /^([A-Z]|message\/)/.test(method),
  },
  {
    protocol: 'mcp',
    name: 'the Model Context Protocol',
    route: '/mcp/*',
    fits: ({ jsonrpc, method }) =>
      jsonrpc === '2.0' &&
      typeof method === 'string' &&
      /^(initialize$|ping$|tools\/|resources\/|prompts\/|completion\/|logging\/|notifications\/)/.test(
        method,
      ),
  },
  {
    protocol: 'n8n',
    name: "n8n's chat",
    route: '/n8n/*',
    fits: ({ action, sessionId }) =>
      (action === 'sendMessage' || action === 'loadPreviousSession') && typeof sessionId === 'string',
  },
  {
    protocol: 'ai-search',
    name: "Cloudflare's AI Search snippet",
    route: '/ai-search/KEY/*/chat/completions',
    fits: ({ ai_search_options: options }) => typeof options === 'object' && options !== null,
  },
  {
    protocol: 'deep-chat',
    name: 'deep-chat',
    route: '/deep-chat/*',
    fits: ({ messages }) => Array.isArray(messages) && messages.length > 0 && messages.every(isBareText),
  },
]

/** A message of deep-chat: a role and a text, where others have contents or parts. */
const isBareText = (said: unknown): boolean =>
  typeof said === 'object' &&
  said !== null &&
  'role' in said &&
  'text' in said &&
  !('content' in said) &&
  !('parts' in said)

/**
 * @param own the protocol that the body was sent to
 * @throws ApiError 400 that names the right address, for a body of another protocol
 */
export function requireOwn(body: unknown, own: string, assistant: string): void {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return
  const mark = MARKS.find(({ fits }) => fits(body as Record<string, unknown>))
  if (mark === undefined || mark.protocol === own) return
  const route = mark.route.replace('*', encodeURIComponent(assistant))
  throw badRequest(`This is a request of ${mark.name}: send it to POST ${route}.`)
}

// =============================================================================
// Reads the text of a chat message: a string, or a list of parts.

/** Types of parts that hold text. Other parts of an answer are sources, reasoning and the like. */
const TEXT = ['text', 'input_text', 'output_text']
/** Types of parts that Parley cannot read. In a question they are refused. */
const FILES = ['file', 'image', 'image_url', 'input_image', 'input_audio', 'input_file', 'audio']

/** @param strict true: refuse files @throws ApiError 400 if the content is neither, or is a file */
export function textIn(content: unknown, strict: boolean): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) {
    if (strict) throw badRequest('The content of a message must be a string or a list of parts.')
    return ''
  }
  const texts: string[] = []
  for (const part of content) {
    const { type, text } = (typeof part === 'object' && part !== null ? part : {}) as Record<string, unknown>
    if (typeof text === 'string' && (type === undefined || TEXT.includes(String(type)))) texts.push(text)
    else if (strict && FILES.includes(String(type))) {
      throw badRequest(`A part of type \`${type}\` cannot be read here: send its text.`)
    }
  }
  return texts.join('\n')
}

interface ChatMessage {
  role: string
  content?: unknown
}

/** The text of the last message, which is the question. @throws ApiError 400 */
export function questionIn({ content }: ChatMessage): string {
  const question = textIn(content ?? '', true)
  if (question.trim() === '') throw badRequest('The last of `messages` has no text.')
  return question
}

/** What users and assistants said before the question. */
export const transcriptIn = (messages: readonly ChatMessage[]): TranscriptMessage[] =>
  messages.flatMap(({ role, content }) =>
    role === 'user' || role === 'assistant'
      ? [{ role, content: contentOf(textIn(content ?? '', false)) }]
      : [],
  )
