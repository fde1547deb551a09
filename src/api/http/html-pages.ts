/** Pages for people who open an address of the API in a browser. They are static assets (ui/). */
import { presentedKey } from './cors'

/** A page as an answer of this Worker, which adds headers of its own. @param path without its ending */
export async function servePage(
  env: Cloudflare.Env,
  { url, method, headers }: Request,
  path: string,
  status?: number,
): Promise<Response> {
  // `new URL(path, url)` would take a host from a path that begins with two slashes, or with an encoded backslash.
  const address = new URL('/', url)
  address.pathname = path
  const page = await env.ASSETS.fetch(new Request(address, { method, headers }))
  return new Response(page.body, { ...page, headers: page.headers, status: status ?? page.status })
}

/**
 * Whether a person has opened an address that is not a page. A client sends a key, and gets an answer in its own
 * protocol.
 */
export const isLost = (request: Request, { status }: Response): boolean =>
  (status === 400 || status === 401 || status === 404) &&
  request.method === 'GET' &&
  (request.headers.get('accept') ?? '').includes('text/html') &&
  !request.headers.has('authorization') &&
  presentedKey(request) === undefined

/**
 * Finds a page for a browser at an API address: the page of that address, if there is one (`/docs`), or else the "not
 * found" page.
 * @param path as it is routed
 */
export async function findPage(
  env: Cloudflare.Env,
  request: Request,
  path: string,
  status: number,
): Promise<Response> {
  const page = await servePage(env, request, path)
  if (page.status < 400) return page
  await page.body?.cancel()
  return servePage(env, request, '/404', status === 401 ? 401 : 404)
}
