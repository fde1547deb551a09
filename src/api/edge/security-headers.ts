/** Headers that keep a browser from making more of an answer than it is. Those of the page are in ui/_headers. */

const HEADERS: Record<string, string> = {
  // Answers are data: nothing in them may load, run or be framed.
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

/** @param secure whether the request came over https: only then may a browser be told to stay with it */
export function protect(headers: Headers, secure: boolean): void {
  // A route that says more of its own answer knows better.
  for (const [name, value] of Object.entries(HEADERS)) if (!headers.has(name)) headers.set(name, value)
  // What one key may read is not for the next reader of a shared cache.
  if (!headers.has('cache-control')) headers.set('cache-control', 'no-store')
  if (secure) headers.set('strict-transport-security', 'max-age=31536000')
}
