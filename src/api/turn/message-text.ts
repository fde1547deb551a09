/** The text of a chat message, as several protocols write it: a string, or a list of parts. */
import { ApiError } from '../../errors'

/** Parts that are a message's text. The others of an answer are its sources, its reasoning and the like. */
const TEXT = ['text', 'input_text', 'output_text']
/** Parts of a question that would go unread. */
const FILES = ['file', 'image', 'image_url', 'input_image', 'input_audio', 'input_file', 'audio']

/**
 * @param strict whether a file is refused
 * @throws ApiError 400 for a content that is none, and for a file
 */
export function textIn(content: unknown, strict: boolean): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) {
    if (strict) throw new ApiError(400, 'The content of a message must be a string or a list of parts.')
    return ''
  }
  const texts: string[] = []
  for (const part of content) {
    const { type, text } = (typeof part === 'object' && part !== null ? part : {}) as Record<string, unknown>
    if (typeof text === 'string' && (type === undefined || TEXT.includes(String(type)))) texts.push(text)
    else if (strict && FILES.includes(String(type))) {
      throw new ApiError(400, `A part of type \`${type}\` cannot be read here: send its text.`)
    }
  }
  return texts.join('\n')
}
