/** The front door of this Worker, for work that wants an invocation of its own. */
import { exports } from 'cloudflare:workers'

/** Whose requests those of background work are: no visitor's. */
export const TESTER = 'question-sets'

/** A name that this Parley answers to (api/http/cors.ts). */
function hostOf({ SERVED_HOSTS = '' }: { SERVED_HOSTS?: string }): string {
  const first = SERVED_HOSTS.split(',')[0]!.trim()
  if (first === 'addresses') return '127.0.0.1'
  return ['', 'loopback'].includes(first) ? 'localhost' : first.replace('*', 'sets')
}

/** Sends a request to this Worker itself, with the admin key. */
export const knock = (env: Cloudflare.Env, path: string, body: Record<string, unknown>): Promise<Response> =>
  exports.default.fetch(
    new Request(`https://${hostOf(env)}${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-typesense-api-key': env.ADMIN_API_KEY ?? '',
        'x-typesense-user-id': TESTER,
        'x-parley-visitor': crypto.randomUUID() + crypto.randomUUID(),
      },
      body: JSON.stringify(body),
    }),
  )
