/** Asking a language model in a test. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ConversationModelConfig, Delta, GenerationRequest } from '../../src/models/language-model'
import { createLanguageModel } from '../../src/models/providers'

const ui = join(import.meta.dirname, '../../ui')

export const localEnv = {
  AI_BACKEND: 'local',
  ALLOWED_HOSTS: '*, 127.0.0.1, localhost',
  ASSETS: {
    fetch: async (url: string) => new Response(await readFile(join(ui, new URL(url).pathname))),
  } as unknown as Fetcher,
} as Cloudflare.Env

export const config = (properties: Record<string, unknown>): ConversationModelConfig =>
  ({
    id: 'm',
    history_collection: 'h',
    max_bytes: 16_384,
    ttl: 86_400,
    ...properties,
  }) as ConversationModelConfig

export const request = (properties: Partial<GenerationRequest> = {}): GenerationRequest => ({
  purpose: 'answer',
  messages: [{ role: 'user', content: 'hi there' }],
  question: 'hi there',
  sources: [],
  history: [],
  stream: true,
  ...properties,
})

/** Everything that a model says. */
export async function ask(
  model: Record<string, unknown>,
  properties: Partial<GenerationRequest> = {},
  signal: AbortSignal = new AbortController().signal,
  env: Cloudflare.Env = localEnv,
): Promise<Delta[]> {
  const deltas: Delta[] = []
  for await (const delta of createLanguageModel(config(model), env).generate(request(properties), signal)) {
    deltas.push(delta)
  }
  return deltas
}

export const textOf = (deltas: Delta[]): string =>
  deltas.map((delta) => (delta.type === 'text' ? delta.text : '')).join('')
