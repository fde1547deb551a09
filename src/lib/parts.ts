/**
 * Content of messages: a list of parts. Questions, answers and what was said before are made of parts, so that each
 * kind has one place in events, prompts, budgets and stores. Pure.
 *
 * The wires of today speak text. They use `contentOf` on the way in and `textOf` on the way out.
 */
import * as v from 'valibot'
import { once } from './once'

/** A picture as models take it. */
const picture = once(() =>
  v.object({
    media_type: v.string(),
    /** base64 */
    data: v.string(),
  }),
)
export type Picture = v.InferOutput<ReturnType<typeof picture>>

const partShape = once(() =>
  v.variant('type', [
    v.object({ type: v.literal('text'), text: v.string() }),
    /** No provider's adapter sends one yet: a prompt names it. */
    v.object({ type: v.literal('image'), ...picture().entries, name: v.exactOptional(v.string()) }),
    /** A file that came with a question. Its text is one of the prompt's documents. */
    v.object({
      type: v.literal('file'),
      name: v.string(),
      /** absent once its turn has begun: the log and the history name files, and do not keep them */
      text: v.exactOptional(v.string()),
      /** in the place of a text, and absent in the same way */
      picture: v.exactOptional(picture()),
    }),
    /** The model wants a tool to run. */
    v.object({
      type: v.literal('tool_call'),
      /** names the call, so that its result finds it */
      id: v.string(),
      name: v.string(),
      /** JSON, as the model wrote it */
      arguments: v.string(),
      /** what the tool does, for people */
      title: v.exactOptional(v.string()),
      /** it has not run yet: `leave` of the visitor is asked for, or the visitor's `page` runs it */
      awaits: v.exactOptional(v.picklist(['leave', 'page'])),
    }),
    /** What a tool replied. `id`: of its call */
    v.object({
      type: v.literal('tool_result'),
      id: v.string(),
      text: v.string(),
      /** it did not run, or failed */
      failed: v.exactOptional(v.literal(true)),
    }),
  ]),
)

export type Part = v.InferOutput<ReturnType<typeof partShape>>
type PartOf<Type extends Part['type']> = Extract<Part, { type: Type }>
export type TextPart = PartOf<'text'>
export type FilePart = PartOf<'file'>
export type ToolCallPart = PartOf<'tool_call'>
export type ToolResultPart = PartOf<'tool_result'>

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
