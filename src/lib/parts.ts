/**
 * Content of messages: a list of parts. Questions, answers and what was said before are made of parts, so that each
 * kind has one place in events, prompts, budgets and stores. Pure.
 *
 * The wires of today speak text. They use `contentOf` on the way in and `textOf` on the way out.
 */
import * as v from 'valibot'
import { once } from './once'

export interface TextPart {
  type: 'text'
  text: string
}

/** A picture. No provider's adapter sends one yet: a prompt names it. */
interface ImagePart {
  type: 'image'
  media_type: string
  /** base64 */
  data: string
  name?: string
}

/** A file that came with a question. Its text is one of the prompt's documents. */
export interface FilePart {
  type: 'file'
  name: string
  /** absent once its turn has begun: the log and the history name files, and do not keep them */
  text?: string
  /** in the place of a text, and absent in the same way */
  picture?: Picture
}

/** A picture as models take it. */
export interface Picture {
  media_type: string
  /** base64 */
  data: string
}

/** The model wants a tool to run. */
export interface ToolCallPart {
  type: 'tool_call'
  /** names the call, so that its result finds it */
  id: string
  name: string
  /** JSON, as the model wrote it */
  arguments: string
}

/** What a tool replied. */
interface ToolResultPart {
  type: 'tool_result'
  /** of its call */
  id: string
  text: string
}

export type Part = TextPart | ImagePart | FilePart | ToolCallPart | ToolResultPart

/** The content that a text is. An empty text has no part. */
export const contentOf = (said: string): Part[] => (said === '' ? [] : [{ type: 'text', text: said }])

/** The text of a content, without its other parts. */
export const textOf = (content: readonly Part[]): string =>
  content.map((part) => (part.type === 'text' ? part.text : '')).join('')

/** Adds text to the end of a content. It grows the last part in place, so a piece of an answer costs no object. */
export function addText(content: Part[], said: string): void {
  const last = content.at(-1)
  if (last?.type === 'text') last.text += said
  else content.push(...contentOf(said))
}

/** The pictures among the files of a question. */
export const picturesOf = (content: readonly Part[]): Picture[] =>
  filesOf(content).flatMap(({ picture }) => picture ?? [])

const isFile = (part: Part): part is FilePart => part.type === 'file'

export const filesOf = (content: readonly Part[]): FilePart[] => content.filter(isFile)

/** The content as a log keeps it: files by name. A file counts for its own turn only. */
export const withoutFileTexts = (content: readonly Part[]): Part[] =>
  content.map((part) => (isFile(part) ? { type: 'file', name: part.name } : part))

/** The content as a history keeps it: without files. */
export const lasting = (content: readonly Part[]): Part[] => content.filter((part) => !isFile(part))

/** How a prompt shows a part of an earlier message. Models of text read all kinds. */
function shown(part: Part): string {
  switch (part.type) {
    case 'text':
      return part.text
    case 'image':
    case 'file':
      return `[${part.type}${part.name === undefined ? '' : `: ${part.name}`}]`
    case 'tool_call':
      return `[call: ${part.name}(${part.arguments})]`
    case 'tool_result':
      return `[result: ${part.text}]`
  }
}

/** The content as a prompt shows it. Each kind counts in `max_bytes` with the bytes of this text. */
export const promptText = (content: readonly Part[]): string => content.map(shown).join('')

/** UTF-16 units that a content takes where it is stored. */
export const storedLength = (content: readonly Part[]): number =>
  content.reduce((sum, part) => sum + (part.type === 'text' ? part.text : JSON.stringify(part)).length, 0)

const partShape: () => v.GenericSchema<Part> = once(() =>
  v.variant('type', [
    v.object({ type: v.literal('text'), text: v.string() }),
    v.object({
      type: v.literal('image'),
      media_type: v.string(),
      data: v.string(),
      name: v.exactOptional(v.string()),
    }),
    v.object({
      type: v.literal('file'),
      name: v.string(),
      text: v.exactOptional(v.string()),
      picture: v.exactOptional(v.object({ media_type: v.string(), data: v.string() })),
    }),
    v.object({ type: v.literal('tool_call'), id: v.string(), name: v.string(), arguments: v.string() }),
    v.object({ type: v.literal('tool_result'), id: v.string(), text: v.string() }),
  ]),
)
const contentShape = once(() => v.array(partShape()))

/** A message as a history stores it: its text, and all parts as JSON if it has others. */
export interface StoredContent {
  message: string
  parts?: string
}

export const toStored = (content: readonly Part[]): StoredContent => ({
  message: textOf(content),
  ...(content.some(({ type }) => type !== 'text') && { parts: JSON.stringify(content) }),
})

/**
 * Anybody may have edited the document. Its `message` is what everybody reads, so parts that say something else do not
 * count.
 */
export function fromStored(message: string, parts: unknown): Part[] {
  if (typeof parts !== 'string') return contentOf(message)
  try {
    const content: unknown = JSON.parse(parts)
    return v.is(contentShape(), content) && textOf(content) === message ? content : contentOf(message)
  } catch {
    return contentOf(message)
  }
}
