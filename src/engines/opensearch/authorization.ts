/** How a cluster learns who asks. */
import type { Credentials } from '../config'

/**
 * An open cluster takes no credentials.
 * @returns the request's headers, and what of them must never be shown
 */
export function authorization(credentials: Credentials): {
  headers: Record<string, string>
  secrets: string[]
} {
  if ('username' in credentials) {
    const { username, password } = credentials
    const basic = btoa(String.fromCharCode(...new TextEncoder().encode(`${username}:${password}`)))
    return { headers: { authorization: `Basic ${basic}` }, secrets: [password, basic] }
  }
  if ('api_key' in credentials) {
    return { headers: { authorization: `ApiKey ${credentials.api_key}` }, secrets: [credentials.api_key] }
  }
  return { headers: {}, secrets: [] }
}
