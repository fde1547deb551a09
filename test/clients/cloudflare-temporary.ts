/**
 * The part of Cloudflare's API that gives temporary accounts, as its documentation and wrangler have it:
 * https://developers.cloudflare.com/workers/platform/claim-deployments/
 */

/** An answer that is not a plain result: the API's errors carry a code of their own. */
export class Refusal extends Error {
  readonly status: number
  readonly code: number
  constructor(status: number, code: number, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

/** The account that somebody without one gets. The counterpart keeps its state with that of the other account. */
export const TEMPORARY_ACCOUNT = 'fedcba9876543210fedcba9876543210'
const TEMPORARY_TOKEN = 'temporary-token'
export const CLAIM_URL = 'https://dash.cloudflare.com/claim-preview?claimToken=claim-token'

/**
 * Bindings of the products that such an account has. Limits of requests, variables and the version are the
 * Worker's own; `inherit` keeps a secret of the version before.
 */
const TEMPORARY_BINDINGS = [
  'assets',
  'd1',
  'durable_object_namespace',
  'inherit',
  'plain_text',
  'ratelimit',
  'secret_text',
  'version_metadata',
]

export const isTemporary = (request: Request): boolean =>
  request.headers.get('authorization')?.endsWith(TEMPORARY_TOKEN) ?? false

/** The documentation names what such an account has, and no code for what it does not have. @throws Refusal */
export function requireTemporary(metadata: {
  bindings: { type: string }[]
  limits?: object
  placement?: object
}): void {
  const types = metadata.bindings.map(({ type }) => type)
  const foreign = types.filter((type) => !TEMPORARY_BINDINGS.includes(type))
  if (metadata.limits || metadata.placement) foreign.push('limits or placement')
  if (foreign.length > 0) throw new Refusal(403, 10000, `A temporary account does not have: ${foreign}`)
}

export const TEMPORARY_ROUTES: [pattern: RegExp, handler: (request: Request) => unknown][] = [
  // What wrangler proves is work. Here it is hardly any.
  [
    /^POST \/provisioning\/previews\/challenge$/,
    () => ({ challengeToken: 'challenge', seed: Buffer.alloc(32).toString('base64url'), k: 2, g: 2 }),
  ],
  [
    /^POST \/provisioning\/previews$/,
    async (request) => {
      const { acceptTermsOfService, challengeToken, solution } = (await request.json()) as {
        acceptTermsOfService: string
        challengeToken: string
        solution: { checkpoints: string }
      }
      if (acceptTermsOfService !== 'yes' || challengeToken !== 'challenge' || !solution.checkpoints) {
        throw new Refusal(400, 10000, 'The challenge was not met')
      }
      const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
      return {
        account: { id: TEMPORARY_ACCOUNT, name: 'quiet-harbour', apiToken: TEMPORARY_TOKEN, expiresAt },
        claim: { url: CLAIM_URL, expiresAt },
      }
    },
  ],
]
