/**
 * What tells this browser apart from others with the same key, which share nothing with it then. It stays in the browser.
 * @returns {string | undefined} undefined where the browser keeps nothing
 */
export function visitorSecret() {
  try {
    localStorage['parley.visitor'] ??= crypto.randomUUID() + crypto.randomUUID()
    return localStorage['parley.visitor']
  } catch {
    return undefined
  }
}
