/**
 * Errors of the Workers AI binding. It throws plain Errors whose messages begin with an internal code: "3040:
 * Capacity temporarily exceeded" (https://developers.cloudflare.com/workers-ai/platform/errors/).
 */
import { faultOfStatus, type Upstream } from './provider-error'

/** Internal code -> HTTP status of the REST API. */
const STATUSES: Record<string, number> = {
  3003: 400, // incomplete request
  3006: 413, // request too large
  3007: 408, // timeout
  3008: 408, // aborted
  3023: 403, // account blocked
  3036: 429, // daily allocation used up
  3039: 400, // finetune without its files
  3040: 429, // out of capacity
  3041: 403, // account not allowed for a private model
  3042: 404, // no such model id
  5004: 400, // invalid data
  5005: 405, // no LoRA
  5006: 400, // the input does not match the model's schema
  5007: 400, // no such model
  5016: 403, // model terms not agreed to
  5018: 403, // account not allowed for a private model
  5019: 405, // SDK too old
  5021: 400, // context window exceeded
  5028: 410, // model retired
  5035: 403, // model needs the Workers Paid plan
}

const ADVICE = new Map<unknown, string>([
  ['5028', 'The model was retired: give the conversation model another `model_name`'],
  [
    '5035',
    'The model needs the Workers Paid plan: upgrade the account, or give the conversation model another `model_name`',
  ],
])

/** What to do about an error. @param code the internal one @returns undefined if the error says all that is known */
export const workersAiAdvice = (code: unknown): string | undefined =>
  ADVICE.get(typeof code === 'number' ? String(code) : code)

/** @param thrown what `run` rejected with. @returns its message, and what it means for a retry */
export function workersAiError(thrown: unknown): { message: string; code?: string; upstream: Upstream } {
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  // Other numbers with a colon can come first, such as part of a request's id.
  const code = [...message.matchAll(/\b(\d{4}):/g)]
    .map(([, digits]) => digits!)
    .find((digits) => digits in STATUSES)
  // An error without a code counts as no reply at all.
  if (code === undefined) return { message, upstream: {} }
  return {
    message,
    code,
    upstream: { upstream: STATUSES[code], fault: faultOfStatus(STATUSES[code]!, code) },
  }
}
