/** Text files that come with a question: which are accepted, and how large they may be. */
import { ApiError } from '../../errors'
import type { FilePart } from '../../lib/parts'
import { isTextFile } from '../../lib/text-file'
import type { AnswerForm } from '../../models/answer-form'
import type { ConversationModelConfig } from '../../models/language-model'
import type { Assistant } from '../../registry/assistants'
import { formBytes } from '../../turn/fit'
import { byteLength } from '../../turn/prompt'

/** A file in a JSON body. */
interface SentFile {
  name: string
  type?: string | undefined
  text: string
}

/** Converts files in a JSON body to parts. @throws ApiError 400 for a file that is not text */
export function partsOf(files: readonly SentFile[] = []): FilePart[] {
  return files.map(({ name, type = '', text }, index) => {
    const mediaType = type.split(';')[0]!.trim().toLowerCase()
    if (type !== '' && !isTextFile(name, mediaType)) {
      throw new ApiError(
        400,
        `\`files.${index}\`: \`${name}\` (${mediaType}) is not supported: attachments have to be text.`,
      )
    }
    return { type: 'file', name, text }
  })
}

/**
 * Bytes of UTF-8 that the names and texts of a question's files and the schema of its answer may take: half of the prompt.
 * Documents need the rest.
 */
export const roomForFiles = ({ max_bytes: maxBytes }: Pick<ConversationModelConfig, 'max_bytes'>): number =>
  Math.floor(maxBytes / 2)

/** @throws ApiError 400 */
export function requireRoom(
  files: readonly FilePart[],
  model: ConversationModelConfig,
  form?: AnswerForm | undefined,
): void {
  const most = roomForFiles(model)
  const bytes = files.reduce((sum, { name, text = '' }) => sum + byteLength(name) + byteLength(text), 0)
  if (bytes > most) {
    throw new ApiError(400, `The files are too long for this assistant: it takes ${most} bytes of them.`)
  }
  if (bytes + formBytes(form) > most) {
    throw new ApiError(
      400,
      `The schema is too long for this assistant: it takes ${most} bytes of it and of files together.`,
    )
  }
}

/**
 * An assistant without a setting for files accepts them only on the AI Chat Protocol, whose clients send them.
 * @throws ApiError 400
 */
export function requireAttachments(
  files: readonly FilePart[],
  { name, attachments }: Assistant,
  protocol: string,
): void {
  if (files.length === 0 || (attachments ?? protocol === 'ai-chat')) return
  throw new ApiError(400, `\`files\`: The assistant \`${name}\` takes no files: it has no \`attachments\`.`)
}
