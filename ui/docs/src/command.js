/** Commands of the documentation as requests that a page can send: what they ask for, what they would change, and the ids in replies. */

/** The server and the key that commands are written with. */
export const WRITTEN = 'http://localhost:8108'
export const WRITTEN_KEY = 'xyz'

/**
 * A request that `curl` would send.
 * @typedef {{ method: string, path: string, headers: Record<string, string>, body?: string }} Request `path` has the query, and the
 *   names of `headers` are in small letters
 */

// ==== The shell

/** What a block is made of: gaps between words, ends of commands, comments, and pieces of words in quotes of three kinds or none. */
const PIECE =
  /(?<gap>(?:[ \t]|\\\n)+)|(?<end>\n)|(?<comment>(?<=^|\s)#.*)|'(?<single>[^']*)'|"(?<double>(?:[^"\\$`]|\\[\s\S])*)"|\\(?<escaped>.)|(?<plain>[^\s'"\\$`|&;<>()]+)/y

/**
 * The commands of a block as lists of words, as a shell splits them.
 * @param {string} block
 * @returns {string[][] | undefined} none where only a shell can go on: at variables, pipes, redirections and `&`
 */
function commandsOf(block) {
  /** @type {string[][]} */
  const commands = [[]]
  let isInWord = false
  for (PIECE.lastIndex = 0; PIECE.lastIndex < block.length; ) {
    const piece = PIECE.exec(block)?.groups
    if (piece === undefined) return undefined
    const { end, single, double, escaped, plain } = piece
    const text = single ?? double?.replace(/\\(["\\$`]|\n)/g, (_, sign) => sign.trim()) ?? escaped ?? plain
    const words = commands.at(-1) ?? []
    if (text !== undefined) words.push(isInWord ? words.pop() + text : text)
    if (end !== undefined) commands.push([])
    isInWord = text !== undefined
  }
  return commands.filter((words) => words.length > 0)
}

// ==== curl

/** The options that a page can follow, by each of their names. */
const OPTIONS = new Map(
  Object.entries({
    method: '-X --request',
    header: '-H --header',
    data: '-d --data --data-ascii --data-binary',
    raw: '--data-raw',
    user: '-u --user',
    none: '-N --no-buffer -s --silent -S --show-error -sS -sN',
  }).flatMap(([option, names]) => names.split(' ').map((name) => /** @type {const} */ ([name, option]))),
)

/** @param {string} text as the bytes of its UTF-8 */
const base64 = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)))

/**
 * @param {string[]} words of a command
 * @returns {Record<string, string[]> | undefined} what each option was given, and addresses; none for an option that a page cannot follow
 */
function optionsOf([program, ...words]) {
  if (program !== 'curl') return undefined
  /** @type {Record<string, string[]>} */
  const given = { address: [], method: [], header: [], data: [], user: [] }
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ''
    const option = word.startsWith('-') ? OPTIONS.get(word) : 'address'
    if (option === 'none') continue
    const value = option === 'address' ? word : words[++at]
    // A file of the reader's.
    if (option === undefined || value === undefined || (option === 'data' && value.startsWith('@')))
      return undefined
    given[option === 'raw' ? 'data' : option]?.push(value)
  }
  return given
}

/**
 * @param {string[]} words of a command
 * @param {string} origin
 * @returns {Request | undefined} none for another program, another server, and what a page cannot send
 */
function requestOf(words, origin) {
  const { address = [], method, header = [], data = [], user } = optionsOf(words) ?? {}
  const whole = address[0]?.replace(/^(?!https?:\/\/)/, 'http://') ?? ''
  if (address.length !== 1 || !URL.canParse(whole)) return undefined
  const url = new URL(whole)
  if (url.username !== '' || ![origin, WRITTEN].includes(url.origin)) return undefined
  /** @type {Record<string, string>} */
  const headers = data.length > 0 ? { 'content-type': 'application/x-www-form-urlencoded' } : {}
  if (user?.[0] !== undefined) headers.authorization = `Basic ${base64(user[0])}`
  for (const line of header) {
    const [, name, value] = /^([\w-]+):\s*(.+)$/.exec(line) ?? []
    if (name === undefined || value === undefined) return undefined
    headers[name.toLowerCase()] = value
  }
  const verb = method?.at(-1) ?? (data.length > 0 ? 'POST' : 'GET')
  const isBodiless = /^(GET|HEAD)$/.test(verb)
  if (isBodiless && data.length > 0) return undefined // fetch refuses it
  return {
    method: verb,
    path: url.pathname + url.search,
    headers,
    ...(data.length > 0 && { body: data.join('&') }),
  }
}

/**
 * The requests of a block of commands, in their order.
 * @param {string} block
 * @param {string} [origin] of the server, beside the one that commands are written with
 * @returns {Request[] | undefined} none if one of its commands is no `curl` to this server, or needs a shell or a file
 */
export function requestsIn(block, origin = WRITTEN) {
  const requests = commandsOf(block)?.map((words) => requestOf(words, origin))
  return requests?.length && requests.every((each) => each !== undefined) ? requests : undefined
}

// ==== What they change

/** Requests that only read, although they have a body: questions and searches. */
const READS = new RegExp(
  `/(?:${[
    '_m?search|_count|_mget|_explain|_validate/query|_field_caps|_analyze|_predict(?:/.+)?',
    'search|multi_search|conversations|chat(?:/completions|/stream)?|completions|responses|embeddings|ask',
    '(?:a2a|agui|ui|n8n|deep-chat)/[^/]+|ui/[^/]+/text|mcp(?:/[^/]+)?|agent/[^/]+/(?:run|connect)',
  ].join('|')})$`,
)

/** What lies below the first words of a path. */
const THINGS = {
  collections: 'collection',
  aliases: 'alias',
  keys: 'key',
  conversations: 'conversation',
  assistants: 'assistant',
  sources: 'source',
  question_sets: 'question set',
  synonym_sets: 'synonym set',
  curation_sets: 'curation set',
  presets: 'preset',
  stopwords: 'set of stopwords',
  nl_search_models: 'model of searches in plain language',
  'conversations/models': 'conversation model',
  'analytics/rules': 'analytics rule',
}

const VERBS = { POST: 'makes', PUT: 'makes or replaces', PATCH: 'changes', DELETE: 'deletes' }

/** Requests with words of their own: the method with the path, and what is done. `$1` stands for the first `*` of the path. */
const SENTENCES = Object.entries({
  'DELETE /collections/*/documents': 'deletes the documents of the collection $1 that the filter names',
  'POST /collections/*/documents': 'puts a document into the collection $1',
  'POST /collections/*/documents/import': 'puts documents into the collection $1',
  'PUT /collections/*/documents/*': 'replaces the document $2 of the collection $1',
  'PATCH /collections/*/documents/*': 'changes the document $2 of the collection $1',
  'DELETE /collections/*/documents/*': 'deletes the document $2 of the collection $1',
  'DELETE /users/*/conversations': 'deletes all conversations of the user $1',
  'PUT /conversations/*/turns/*/feedback': 'rates the answer $2 of the conversation $1',
  'POST /analytics/events': 'records an event',
}).map(([pattern, sentence]) => ({
  pattern: new RegExp(`^${pattern.replaceAll('*', '([^/]+)')}$`),
  sentence,
}))

/** @param {string | undefined} body @returns {string | undefined} what it calls the thing that it describes */
function nameIn(body) {
  const [value] = objectsIn(body ?? '')
  const name = value?.name ?? value?.id
  return typeof name === 'string' ? name : undefined
}

/**
 * What a request changes on the server, as a sentence.
 * @param {Request} request
 * @returns {string | undefined} none for one that only reads or asks
 */
export function effectOf({ method, path, body }) {
  const pathname = decodeURIComponent(path.replace(/\?.*/, ''))
  if (/^(GET|HEAD)$/.test(method) || (method === 'POST' && READS.test(pathname))) return undefined
  const line = `${method} ${pathname}`
  const special = SENTENCES.find(({ pattern }) => pattern.test(line))
  if (special) return `This ${line.replace(special.pattern, special.sentence)} on this server.`
  const [, place = '', inPath] =
    /^\/((?:(?:conversations|analytics)\/)?[a-z_]+)(?:\/([^/]+))?$/.exec(pathname) ?? []
  const ofModel = Object.entries(THINGS).find(([first]) => first === place)?.[1]
  const verb = Object.entries(VERBS).find(([each]) => each === method)?.[1]
  if (ofModel === undefined || verb === undefined)
    return method === 'DELETE'
      ? `This deletes ${pathname} on this server.`
      : `This sends ${line}, which can change what is on this server.`
  const name = inPath ?? nameIn(body)
  const thing =
    name === undefined ? `${/^[aeiou]/.test(ofModel) ? 'an' : 'a'} ${ofModel}` : `the ${ofModel} ${name}`
  return `This ${verb} ${thing} on this server.`
}

// ==== Ids

/** What stands for ids in commands, which requests give one, and the field of their reply. */
const IDS = Object.entries({
  CONVERSATION: { from: /./, field: 'conversation_id' },
  RESPONSE: { from: /^POST \/v1\/responses$/, field: 'id' },
  CONVERSED: { from: /^POST \/v1\/conversations$/, field: 'id' },
  KEY_ID: { from: /^POST \/keys$/, field: 'id' },
  RUN: { from: /^POST \/question_sets\/[^/]+\/runs$/, field: 'id' },
  CONNECTOR: { from: /\/_ml\/connectors\/_create$/, field: 'connector_id' },
  GROUP: { from: /\/_ml\/model_groups\/_register$/, field: 'model_group_id' },
  TASK: { from: /\/_ml\/models\/_register$/, field: 'task_id' },
  MODEL: { from: /\/_ml\/models\/_register$/, field: 'model_id' },
  AGENT: { from: /\/_ml\/agents\/_register$/, field: 'agent_id' },
  MEMORY: { from: /\/_ml\/memory$/, field: 'memory_id' },
  MESSAGE: { from: /\/_ml\/memory\/[^/]+\/messages$/, field: 'message_id' },
})

/** The names, also as a part of an id such as `msg_CONVERSED.1.q`. */
const NAME = `(?<![A-Za-z\\d])(?:${IDS.map(([name]) => name).join('|')})(?![A-Za-z\\d_])`
const NAMES = new RegExp(NAME, 'g')

/** What has to be put into a command before it is sent: ids, and secrets of others such as `OPENAI_API_KEY`. */
const OPEN = new RegExp(`${NAME}|\\b[A-Z_]*KEY\\b|sk-\\.\\.\\.`, 'g')

/**
 * The objects in a reply: one, or one on each line, as in imports and streams of events.
 * @param {string} text
 * @returns {Record<string, any>[]}
 */
function objectsIn(text) {
  const parsed = (/** @type {string} */ json) => {
    try {
      const value = JSON.parse(json)
      return typeof value === 'object' && value !== null ? [value] : []
    } catch {
      return []
    }
  }
  const whole = parsed(text)
  return whole.length > 0 ? whole : text.split('\n').flatMap((line) => parsed(line.replace(/^data: /, '')))
}

/**
 * The ids that a reply has for later commands, by the names that stand for them.
 * @param {Request} request
 * @param {string} text of the reply
 * @param {string | null} conversation what the header `x-parley-conversation-id` of the reply says
 * @returns {[name: string, id: string][]}
 */
export function idsIn({ method, path }, text, conversation) {
  const line = `${method} ${path.replace(/\?.*/, '')}`
  const objects = objectsIn(text)
  return IDS.flatMap(([name, { from, field }]) => {
    if (!from.test(line)) return []
    const values = objects.map((each) => each[field] ?? each.conversation?.[field])
    const id = values.find((value) => value !== undefined) ?? (name === 'CONVERSATION' ? conversation : null)
    return /^(string|number)$/.test(typeof id) ? [/** @type {[string, string]} */ ([name, String(id)])] : []
  })
}

/** The names of ids in a text, each once. @param {string} text */
export const namesIn = (text) => [...new Set(text.match(NAMES))]

/** What still stands for something else in a request, each once. @param {Request} request */
export const openIn = ({ path, body = '' }) => [...new Set(`${path}\n${body}`.match(OPEN))]

/** Puts ids in the place of their names. @param {string} text @param {ReadonlyMap<string, string>} ids */
export const filled = (text, ids) => text.replace(NAMES, (name) => ids.get(name) ?? name)

// ==== Replies

/**
 * JSON in lines, in pieces with the class that its colour has in the pages' own code.
 * @param {string} text
 * @returns {{ text: string, kind?: string }[]} one piece for what is no JSON, or too much to colour
 */
export function coloured(text) {
  let json = text
  try {
    json = JSON.stringify(JSON.parse(text), undefined, 2)
  } catch {
    return [{ text }]
  }
  if (json.length > 50_000) return [{ text: json }]
  return json.split(/("(?:[^"\\]|\\.)*"(?::)?|-?\d[\d.eE+-]*|true|false|null)/).map((piece) => {
    if (piece.endsWith(':')) return { text: piece, kind: 't-keyword' }
    if (piece.startsWith('"')) return { text: piece, kind: 't-string-expression' }
    return /^[-\dtfn]/.test(piece) ? { text: piece, kind: 't-constant' } : { text: piece }
  })
}
