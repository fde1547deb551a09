/** Pages for whoever opens an address of the API in a browser. They are static assets (ui/). */
import { presentedKey } from './presented-key'

/** A page as an answer of this Worker, which adds headers of its own. @param path without its ending */
export async function servePage(
  env: Cloudflare.Env,
  { url, method, headers }: Request,
  path: string,
  status?: number,
): Promise<Response> {
  const page = await env.ASSETS.fetch(new Request(new URL(path, url), { method, headers }))
  return new Response(page.body, { ...page, headers: page.headers, status: status ?? page.status })
}

/**
 * Whether somebody has typed or followed an address that is no page. A client brings a key, and is answered in its own
 * protocol's words.
 */
export const isLost = (request: Request, { status }: Response): boolean =>
  (status === 400 || status === 401 || status === 404) &&
  request.method === 'GET' &&
  (request.headers.get('accept') ?? '').includes('text/html') &&
  !request.headers.has('authorization') &&
  presentedKey(request) === undefined

/**
 * For somebody who is lost: the page at the address, where an API has the address too (`/docs`), or else the one that says
 * that there is none.
 */
export async function findPage(env: Cloudflare.Env, request: Request, status: number): Promise<Response> {
  const page = await servePage(env, request, new URL(request.url).pathname)
  if (page.status < 400) return page
  await page.body?.cancel()
  return servePage(env, request, '/404', status === 401 ? 401 : 404)
}
