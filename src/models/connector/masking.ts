/** Masks secrets in a text that arrives in pieces. */
import { maskSecret } from '../../lib/mask'
import type { Delta } from '../language-model'

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
