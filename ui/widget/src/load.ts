/** Parts that are loaded when they are needed. Their hashes are in the first script, so that its own covers them. */

import type { BlockOptions } from './blocks'
import type { Code, Grammar } from './code'

interface Part {
  file: string
  integrity: string
}

/** Filled in by scripts/widget.mjs. */
declare const PARTS: { markdown: Part; languages: Part; code: Part; finder: Part; pdf: Part } & Record<
  `grammar-${Grammar}`,
  Part
>

interface Policies {
  createPolicy(
    name: string,
    rules: { createScriptURL(url: string): string },
  ): { createScriptURL(url: string): string }
}

/** Pages that ask for Trusted Types let the policy `parley-chat` make the addresses of parts. */
const trusted = (globalThis as { trustedTypes?: Policies }).trustedTypes?.createPolicy('parley-chat', {
  createScriptURL: (url) => url,
})

const loading = new Map<string, Promise<unknown>>()

/** @param nonce of the page's policy, where it goes by nonces */
export function load<T>(name: keyof typeof PARTS, nonce: string): Promise<T> {
  const known = loading.get(name)
  if (known) return known as Promise<T>
  const { file, integrity } = PARTS[name]
  const part = new Promise<T>((resolve, reject) => {
    const script = document.createElement('script')
    script.type = 'module'
    script.crossOrigin = 'anonymous'
    script.integrity = integrity
    if (nonce) script.nonce = nonce
    const address = new URL(file, import.meta.url).href
    script.src = trusted?.createScriptURL(address) ?? address
    script.onload = () =>
      resolve((globalThis as Record<symbol, unknown>)[Symbol.for(`parley-chat.${name}`)] as T)
    script.onerror = () => {
      loading.delete(name)
      reject(new Error(`${script.src} could not be loaded.`))
    }
    document.head.append(script)
    // The element has done its work once the script runs.
    script.addEventListener('load', () => script.remove())
  })
  loading.set(name, part)
  return part
}

/** Gives code its colours, with what that needs loaded when the first code comes. @param nonce as for `load` */
export const colours =
  (nonce: string): NonNullable<BlockOptions['colour']> =>
  async (text, grammar) => {
    const { piecesOf } = await load<Code>('code', nonce)
    return piecesOf(text, grammar, (name) => load(`grammar-${name}`, nonce))
  }
