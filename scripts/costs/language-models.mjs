/**
 * Prices of language models on Workers AI, in dollars by a million tokens, in and out, as of November 2026.
 * https://developers.cloudflare.com/workers-ai/platform/pricing/
 * @type {Record<string, { in: number, out: number }>}
 */
export const LANGUAGE_MODELS = {
  'llama-3.3-70b-instruct-fp8-fast': { in: 0.293, out: 2.253 },
  'glm-4.7-flash': { in: 0.0605, out: 0.4 },
}
