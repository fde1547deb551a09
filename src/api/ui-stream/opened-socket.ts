/**
 * What a socket of `useAgent` was opened with. The platform keeps it with the socket, while its object sleeps. It is sealed, because
 * the address and the headers hold a key and a visitor's secret.
 */
import * as v from 'valibot'
import { open, seal } from '../../db/sealing'
import { ApiError } from '../../errors'
import { once } from '../../lib/once'
import { readStored } from '../../lib/stored-json'
import type { OpenCall } from '../http/router'

const shape = once(() =>
  v.object({
    agent: v.string(),
    url: v.string(),
    headers: v.array(v.tuple([v.string(), v.string()])),
    path: v.record(v.string(), v.string()),
    route: v.string(),
  }),
)

/** The request that opened a socket, and `agent`, the assistant's name. Each message is a request with the same address and headers. */
export type OpenedSocket = v.InferOutput<ReturnType<typeof shape>>

/** The header that passes a sealed request on to the socket's object. */
export const OPENED = 'x-parley-opened'

/** Headers that say who asks, and from where. */
const KEPT =
  /^(?:x-.*|api-key|authorization|origin|sec-fetch-.*|user-agent|accept-language|cf-connecting-ip|idempotency-key)$/

/** Characters of a seal. The platform keeps 16,384 bytes with a socket, of which its own framing takes some. */
const LONGEST = 16_000

/** Every deployment has one of these secrets. What is sealed for sockets opens nothing else. */
const sealing = ({ ENCRYPTION_KEY, ADMIN_API_KEY }: Cloudflare.Env) => ({
  ENCRYPTION_KEY: `sockets of agents ${ENCRYPTION_KEY || ADMIN_API_KEY}`,
})

/**
 * Seals the request that opens a socket.
 * @param agent the assistant's name
 * @throws ApiError 413 if it is longer than can be kept
 */
export async function sealSocket({ env, request, path, record }: OpenCall, agent: string): Promise<string> {
  const headers = [...request.headers].filter(([name]) => KEPT.test(name))
  const opened: OpenedSocket = { agent, url: request.url, headers, path, route: record.route! }
  const sealed = await seal(JSON.stringify(opened), sealing(env))
  if (sealed.length > LONGEST) {
    throw new ApiError(
      413,
      'The address of a WebSocket and its headers may have 11,000 bytes at most. Use a shorter key or user agent.',
    )
  }
  return sealed
}

/** @throws ApiError 400 if the deployment's secret has changed since */
export const unsealSocket = async (env: Cloudflare.Env, sealed: string): Promise<OpenedSocket> =>
  readStored(shape(), await open(sealed, sealing(env)))
