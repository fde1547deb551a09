/** What a streamed answer costs by the provider that writes it: CPU a chunk, against copying the same bytes. */
import { HISTORY_FIELDS, makeDocument, SCHEMA } from './documents.mjs'
import { report } from './report.mjs'
import { call } from './server.mjs'
import { CHUNKS, measure, read, startUpstream } from './stream.mjs'

/** milliseconds between chunks: 1,000 of them a second */
const GAP = 1
const ROUNDS = 4

/** Each adapter: its model, given where its provider is, and the path that it asks for a stream at. */
const ADAPTERS = {
  openai: {
    model: (url) => ({ model_name: 'openai/bench', openai_url: url }),
    path: '/v1/chat/completions',
  },
  azure: {
    model: (url) => ({
      model_name: 'azure/bench',
      url: `${url}/openai/deployments/bench/chat/completions?api-version=2024-10-21`,
    }),
    path: '/openai/deployments/bench/chat/completions',
  },
  vllm: {
    model: (url) => ({ model_name: 'vllm/bench', vllm_url: url }),
    path: '/v1/chat/completions',
  },
  google: {
    model: (url) => ({ model_name: 'google/bench', google_url: url }),
    path: '/v1beta/models/bench:streamGenerateContent',
  },
  anthropic: {
    model: (url) => ({ model_name: 'anthropic/bench', anthropic_url: url }),
    path: '/v1/messages',
  },
  bedrock: {
    model: (url) => ({
      model_name: 'bedrock/bench',
      bedrock_url: url,
      region: 'eu-west-1',
      access_key_id: 'AKIDEXAMPLE',
      secret_access_key: 'wJalrXUtnFEMI',
      api_key: undefined,
    }),
    path: '/model/bench/converse-stream',
  },
  'workers-ai': {
    model: (url) => ({ model_name: 'cloudflare/@cf/bench/model', account_id: 'bench', cloudflare_url: url }),
    path: '/accounts/bench/ai/run/@cf/bench/model',
  },
}

export async function benchAdapters(server) {
  const upstream = await startUpstream()
  const post = (path, body) => call(server, path, { method: 'POST', body: JSON.stringify(body) })
  try {
    const name = 'adapters'
    await post('/collections', { name, ...SCHEMA })
    const documents = Array.from({ length: 100 }, (_, n) => JSON.stringify(makeDocument(n)))
    await call(server, `/collections/${name}/documents/import`, {
      method: 'POST',
      body: documents.join('\n'),
    })
    await post('/collections', { name: 'adapters_history', fields: HISTORY_FIELDS })
    const base = `${upstream.url}/chunks=${CHUNKS}&gap=${GAP}&wait=50`
    // Each round asks something else. A question that was just asked gets a copy of that answer.
    let round = 0
    const ask = (adapter) => {
      const query = new URLSearchParams({
        q: makeDocument(round++ % 100).title,
        query_by: 'title,text',
        conversation: 'true',
        conversation_model_id: adapter,
        conversation_stream: 'true',
      })
      const url = `${server.url}/collections/${name}/documents/search?${query}`
      return read(url, { headers: { 'x-typesense-api-key': 'xyz' } }, 'word0')
    }
    // All that the adapters share is warm before the first of them is measured, which would pay for it otherwise.
    for (const [adapter, { model }] of Object.entries(ADAPTERS)) {
      await post('/conversations/models', {
        id: adapter,
        history_collection: 'adapters_history',
        api_key: 'sk-benchmark',
        max_bytes: 8192,
        ...model(base),
      })
      await ask(adapter)
    }
    for (const [adapter, { path }] of Object.entries(ADAPTERS)) {
      const relayed = `${server.url}/__bench/relay?url=${encodeURIComponent(base + path)}`
      const copied = await measure(server, ROUNDS, () => read(relayed, {}, 'word0'))
      const answered = await measure(server, ROUNDS, () => ask(adapter))
      report({
        what: `CPU a chunk of an answer streamed from ${adapter}, ${GAP} ms between chunks, against a Worker that copies the bytes`,
        parley: `${answered.cpu.toFixed(0)} µs`,
        baseline: `${copied.cpu.toFixed(0)} µs`,
        ratio: answered.cpu / copied.cpu,
        aim: 1,
        better: 'lower',
      })
    }
  } finally {
    upstream.stop()
  }
}
