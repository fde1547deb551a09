/** Reads the text of a chat message: a string, or a list of parts. */
import { ApiError } from '../../errors'

/** Types of parts that hold text. Other parts of an answer are sources, reasoning and the like. */
const TEXT = ['text', 'input_text', 'output_text']
/** Types of parts that Parley cannot read. In a question they are refused. */
const FILES = ['file', 'image', 'image_url', 'input_image', 'input_audio', 'input_file', 'audio']

/**
 * @param strict true: refuse files
 * @throws ApiError 400 if the content is neither, or is a file
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
