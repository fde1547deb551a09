/** JSON-RPC 2.0, which MCP and A2A speak (https://www.jsonrpc.org/specification). */
import * as v from 'valibot'
import { ApiError, inFull } from '../../errors'
import { once } from '../../lib/once'
import { codeOf } from '../../turn/errors'
import { shaped } from './body'
import { type FailedRequest, failureOf, toRetry } from './deliver'

export const PARSE_ERROR = -32700
export const INVALID_REQUEST = -32600
export const METHOD_NOT_FOUND = -32601
export const INVALID_PARAMS = -32602
/** The first number of those that a server may give its own errors. */
const SERVER_ERROR = -32000

export type RpcId = string | number

export interface RpcRequest {
  /** absent: a notification, which gets no reply */
  id?: RpcId
  method: string
  params: Record<string, unknown>
}

/** An error that the protocol has a number for. */
export class RpcError extends ApiError {
  constructor(
    readonly number: number,
    message: string,
    status = 400,
  ) {
    super(status, message)
  }
}

const Message = once(() =>
  v.looseObject({
    jsonrpc: v.literal('2.0'),
    id: v.optional(v.union([v.string(), v.number()])),
    method: v.optional(v.string()),
    // Some clients write null where there are none.
    params: v.nullish(v.record(v.string(), v.unknown())),
  }),
)

/**
 * Reads one message of a body.
 * @returns undefined for a reply, because this server sends no requests
 * @throws RpcError for anything but a message
 */
export function readMessage(body: unknown): RpcRequest | undefined {
  const message = shaped(Message(), body, 'body', (fault) => new RpcError(INVALID_REQUEST, fault))
  const { id, method, params } = message
  if (method === undefined) {
    if ('result' in message || 'error' in message) return undefined
    throw new RpcError(INVALID_REQUEST, '`method` is missing.')
  }
  return { ...(id !== undefined && { id }), method, params: params ?? {} }
}

export const rpcResult = (id: RpcId, result: unknown) => ({ jsonrpc: '2.0', id, result })

/** A thrown error as the `error` of a reply. `data` has Parley's own code. */
export function rpcError(error: unknown, id: RpcId | null, request?: FailedRequest) {
  const failure = failureOf(error, request)
  const number = error instanceof RpcError ? error.number : SERVER_ERROR
  const data = error instanceof RpcError ? undefined : { code: codeOf(failure), status: failure.status }
  return { jsonrpc: '2.0', id, error: { code: number, message: inFull(failure), ...(data && { data }) } }
}

/** A request that failed as a whole, with its HTTP status. */
export function rpcRefusal(error: unknown, request?: FailedRequest): Response {
  const failure = failureOf(error, request)
  return toRetry(Response.json(rpcError(error, null, request), { status: failure.status }), failure)
}

/** One message as server-sent event. */
export const rpcFrame = (message: unknown): string => `event: message\ndata: ${JSON.stringify(message)}\n\n`
