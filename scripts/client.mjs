/** Parley's API, for scripts. */

/**
 * Calls the API as an administrator.
 * @param {string} url
 * @param {string} key
 */
export const client =
  (url, key) =>
  /**
   * @param {string} method
   * @param {string} path
   * @param {unknown} [body] what is no string is sent as JSON
   * @returns {Promise<any>} the answer's JSON
   * @throws Error with what the server answered
   */
  async (method, path, body) => {
    const response = await fetch(url + path, {
      method,
      headers: { 'x-typesense-api-key': key },
      signal: AbortSignal.timeout(120_000),
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path.split('?')[0]} answered ${response.status}: ${text}`)
    return JSON.parse(text)
  }
