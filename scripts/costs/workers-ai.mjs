/** Language models of Workers AI, as docs/models.md lists them. */
import { markdown } from './table.mjs'

/** The day on which the list was compared with Cloudflare's catalogue and price list. */
export const CHECKED = '2026-11-22'

/**
 * Prices are dollars by a million tokens, the context is tokens of prompt and answer together.
 * https://developers.cloudflare.com/workers-ai/models/
 * @type {Record<string, { in: number, out: number, context: number, note: string }>}
 */
export const WORKERS_AI_MODELS = {
  '@cf/ibm-granite/granite-4.0-h-micro': { in: 0.017, out: 0.11, context: 131_000, note: 'the cheapest' },
  '@cf/meta/llama-3.2-1b-instruct': { in: 0.027, out: 0.201, context: 60_000, note: '' },
  '@cf/zai-org/glm-4.7-flash': {
    in: 0.0605,
    out: 0.4,
    context: 131_072,
    note: 'thinks when `reasoning_effort` is set',
  },
  '@cf/google/gemma-4-26b-a4b-it': { in: 0.1, out: 0.3, context: 256_000, note: 'can think' },
  '@cf/openai/gpt-oss-20b': { in: 0.2, out: 0.3, context: 128_000, note: 'always thinks' },
  '@cf/meta/llama-3.3-70b-instruct-fp8-fast': {
    in: 0.293,
    out: 2.253,
    context: 24_000,
    note: 'of the trial question',
  },
  '@cf/openai/gpt-oss-120b': { in: 0.35, out: 0.75, context: 128_000, note: 'always thinks' },
  '@cf/zai-org/glm-5.3-flash': {
    in: 0.15,
    out: 0.5,
    context: 1_310_720,
    note: 'Workers Paid plan only; always thinks',
  },
}

/** In Markdown. */
export const modelsTable = () =>
  markdown([
    ['`model_name`, after `cloudflare/`', 'A million tokens in', 'out', 'Context', 'Remarks'],
    ...Object.entries(WORKERS_AI_MODELS).map(([name, { in: read, out, context, note }]) => [
      `\`${name}\``,
      `$${read}`,
      `$${out}`,
      context.toLocaleString('en-US'),
      note,
    ]),
  ])
