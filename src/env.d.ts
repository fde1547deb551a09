/** Secrets and optional bindings: they are not in wrangler.toml, so `wrangler types` does not know them. */
declare namespace Cloudflare {
  interface Env {
    /** The admin key. `npm start` passes `xyz`; `npm run deploy` makes one. */
    ADMIN_API_KEY?: string
    /** Seals provider credentials at rest. Any string of 16 characters or more. */
    ENCRYPTION_KEY?: string
    /** The ENCRYPTION_KEY before this one: still opens what was sealed under it, until all of it is sealed anew. */
    ENCRYPTION_KEY_PREVIOUS?: string
    /** Vectorize indexes of other dimensions than wrangler.toml binds: by hand, where they are wanted. */
    VECTORIZE_384?: Vectorize
    VECTORIZE_768?: Vectorize
    VECTORIZE_1536?: Vectorize
    /** A dataset of Analytics Engine for figures of turns (docs/operating.md): by hand, where it is wanted. */
    TURNS?: AnalyticsEngineDataset
    /** Names that this Worker answers to, separated by commas; every name where it is not set (src/api/http/cors.ts). */
    SERVED_HOSTS?: string
    /** `off` refuses keys in URLs; they are taken where it is not set (src/api/http/cors.ts). */
    KEYS_IN_URLS?: 'off' | 'on'
    /** A namespace of AI Search, for collections of the engine `ai-search` without a token. */
    AI_SEARCH?: AiSearchNamespace
    /** For an AI Gateway that asks who calls. */
    AI_GATEWAY_TOKEN?: string
    /** Where AI Gateways are found, should that be another place than Cloudflare's own. */
    AI_GATEWAY_URL?: string
  }
}
