/** The API key of this browser. A server on this machine has a key that everybody knows, until it is told another one. */
import { signal } from '@preact/signals'

const NAME = 'parley.key'
const isLocal = /^(localhost|127\.0\.0\.1|\[::1\])$/.test(location.hostname)
const DEFAULT = isLocal ? 'xyz' : ''

function stored(): string | undefined {
  try {
    return sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME) ?? undefined
  } catch {
    return undefined
  }
}

export const key = signal(stored() ?? DEFAULT)
/** whether the server has refused the key: the console then asks for another one */
export const refused = signal(false)

/** @param remember keeps it in this browser; otherwise it goes with the tab */
export function setKey(value: string, remember: boolean): void {
  try {
    sessionStorage.setItem(NAME, value)
    if (remember) localStorage.setItem(NAME, value)
    else localStorage.removeItem(NAME)
  } catch {
    // Kept for as long as the page is open.
  }
  refused.value = false
  key.value = value
}

export function forgetKey(): void {
  setKey('', false)
}
