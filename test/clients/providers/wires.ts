/** Every provider that can answer, as a model is configured for it, and its counterpart. */
import { TOKEN } from '../../models/workers-ai/server'
import { type Counterpart, startBound, startDouble, startMock } from './counterparts'

export interface Wire {
  /** how docs/models.md calls it */
  name: string
  /** how its errors begin */
  label: string
  start(): Promise<Counterpart>
  /** the properties of a model; `url` is the counterpart's */
  model(url: string): Record<string, unknown>
  /** what its replies cannot say */
  lacks?: ('tokens' | 'finish' | 'reasoning' | 'refusal')[]
}

/** One model of Workers AI for either shape of its streams. */
const [OWN, OPENAI] = ['cloudflare/@cf/meta/llama-3.2-1b-instruct', 'cloudflare/@cf/zai-org/glm-4.7-flash']

const byToken = (model_name: string) => (url: string) => ({
  model_name,
  api_key: TOKEN,
  account_id: 'account',
  cloudflare_url: url,
})

const bound = (model_name: string) => () => ({ model_name, api_key: undefined })

/** What OpenAI itself is asked for without a word of the model; another `openai_url` is not. */
const AS_OPENAI = { stream_options: { include_usage: true } }

const ALL: Wire[] = [
  {
    name: '`openai/...`',
    label: 'OpenAI',
    start: () => startMock('content_filter'),
    model: (url) => ({ model_name: 'openai/gpt-4o', openai_url: url, ...AS_OPENAI }),
  },
  {
    name: '`openai/...` at an `openai_url`',
    label: 'OpenAI',
    start: () => startMock('content_filter'),
    model: (url) => ({ model_name: 'openai/gpt-4o', openai_url: url }),
    lacks: ['tokens'],
  },
  {
    name: '`azure/...`',
    label: 'Azure',
    start: () => startMock('content_filter'),
    model: (url) => ({
      model_name: 'azure/gpt-4o',
      url: `${url}/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21`,
    }),
  },
  {
    name: '`google/...`',
    label: 'Gemini',
    start: () => startMock('content_filter'),
    model: (url) => ({ model_name: 'google/gemini-2.5-flash', google_url: url }),
  },
  {
    name: '`anthropic/...`',
    label: 'Anthropic',
    start: () => startMock('refusal'),
    model: (url) => ({ model_name: 'anthropic/claude-sonnet-4-5', anthropic_url: url }),
  },
  {
    name: '`bedrock/...`',
    label: 'Bedrock',
    start: () => startMock('content_filtered'),
    model: (url) => ({
      model_name: 'bedrock/anthropic.claude-3-5-sonnet-20241022-v2:0',
      api_key: undefined,
      region: 'eu-west-1',
      access_key_id: 'AKIDEXAMPLE',
      secret_access_key: 'wJalrXUtnFEMI',
      bedrock_url: url,
    }),
  },
  {
    name: '`cloudflare/@cf/...` (binding, own form)',
    label: 'Cloudflare',
    start: startBound,
    model: bound(OWN),
    lacks: ['finish', 'reasoning', 'refusal'],
  },
  {
    name: "`cloudflare/@cf/...` (binding, OpenAI's form)",
    label: 'Cloudflare',
    start: startBound,
    model: bound(OPENAI),
  },
  {
    name: '`cloudflare/@cf/...` (key, own form)',
    label: 'Cloudflare',
    start: () => startDouble(),
    model: byToken(OWN),
    lacks: ['finish', 'reasoning', 'refusal'],
  },
  {
    name: "`cloudflare/@cf/...` (key, OpenAI's form)",
    label: 'Cloudflare',
    start: () => startDouble(),
    model: byToken(OPENAI),
  },
  {
    name: '`vllm/...`',
    label: 'vLLM',
    start: () => startMock('content_filter'),
    model: (url) => ({ model_name: 'vllm/gpt-4o', vllm_url: url }),
  },
]

/** Those that `npm test` draws: the wires that differ most. `npm run test:all` takes all. */
const FEW = ['`openai/...`', '`anthropic/...`', '`cloudflare/@cf/...` (binding, own form)']
export const isShort = !process.env.FULL
export const WIRES: Wire[] = isShort ? ALL.filter(({ name }) => FEW.includes(name)) : ALL
