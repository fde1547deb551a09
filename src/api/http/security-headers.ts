/** Headers that stop a browser from executing or embedding an answer. Headers of the pages are in ui/_headers. */

const HEADERS: Record<string, string> = {
  // Answers are data: nothing in them may load, run or be framed.
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

/** @param secure whether the request came over https: only then is HSTS sent */
export function protect(headers: Headers, secure: boolean): void {
  // A header that the route has set itself wins.
  for (const [name, value] of Object.entries(HEADERS)) if (!headers.has(name)) headers.set(name, value)
  // A shared cache must not give one key's answer to the next caller.
  if (!headers.has('cache-control')) headers.set('cache-control', 'no-store')
  if (secure) headers.set('strict-transport-security', 'max-age=31536000')
}
