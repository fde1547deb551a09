/**
 * The sample: Parley's own documentation, cut into passages by heading, with a model to ask about it. A newcomer
 * can ask Parley how Parley works, and sees on the way what a collection for questions looks like.
 */
import { createHash } from 'node:crypto'
import { anchor, anchors } from './docs/anchors.mjs'
import { read, written } from './docs/pages.mjs'
import { HISTORY } from './parley/commands/init.mjs'
import { refusal, Server, sendBatch } from './parley/server.mjs'

/** What the page on / offers to a visitor who does not know what to ask. */
const QUESTIONS = [
  'How do I create a conversation model?',
  'What happens when a document is too long?',
  'How does Parley store history?',
  'Which language models can answer?',
]

const schema = {
  name: 'docs',
  fields: [
    { name: 'title', type: 'string' },
    { name: 'heading', type: 'string' },
    { name: 'text', type: 'string' },
    { name: 'url', type: 'string', index: false, optional: true },
    { name: 'section', type: 'string', facet: true },
    {
      name: 'embedding',
      type: 'float[]',
      embed: {
        from: ['title', 'heading', 'text'],
        model_config: { model_name: 'ts/all-MiniLM-L12-v2' },
      },
    },
  ],
}

const model = {
  id: 'docs',
  history_collection: 'docs_history',
  max_bytes: 16_384,
  // Many models of Workers AI end at 256 tokens where nothing is set; the built-in one takes no notice.
  max_tokens: 1024,
  ttl: 86_400,
}

/** What answers on /chat, and where other protocols name no assistant. */
const assistant = {
  model: 'docs',
  collections: ['docs'],
  questions: QUESTIONS,
  title_field: 'heading',
  url_field: 'url',
  category_field: 'section',
}

/**
 * Cuts a Markdown page at its headings of the first three levels; headings inside code blocks are code.
 * @param {string} name of the file, without its ending
 * @param {string} markdown
 * @returns {{ id: string, title: string, heading: string, text: string, section: string, at: string }[]} `at` is the
 *   heading's anchor on the page, '' for the page's own title
 */
export function cut(name, markdown) {
  const anchorOf = anchors()
  /** @type {{ heading: string, at: string, lines: string[] }[]} */
  const parts = []
  let fence = ''
  for (const line of markdown.split('\n')) {
    const mark = /^`{3,}/.exec(line)?.[0] ?? ''
    if (fence === '') fence = mark
    else if (mark.startsWith(fence)) fence = ''
    const heading = fence !== '' ? null : /^#{1,3} (.+)$/.exec(line)
    if (heading?.[1] !== undefined) {
      const text = heading[1].replaceAll('`', '')
      const at = anchorOf(text)
      parts.push({ heading: text, at: parts.length === 0 ? '' : at, lines: [] })
    } else parts.at(-1)?.lines.push(line)
  }
  const title = parts[0]?.heading ?? name
  return parts
    .map(({ heading, at, lines }) => ({
      id: anchor(heading),
      title,
      heading,
      text: lines.join('\n').trim(),
      section: name,
      at,
    }))
    .filter((passage) => passage.text !== '')
}

/**
 * All passages of docs/. Their ids are what answers cite them by (`[how-long-is-history-kept.txt]`), so they are words
 * and hyphens; where two pages have the same heading, the second one's has its page before it.
 * @param {string} url where the server answers, which has the documentation as pages too: commands name it
 */
export function passages(url) {
  const seen = new Set()
  // Decisions are for who changes Parley. Tutorials and guides come last: they repeat what the other pages are about.
  const names = written()
    .filter((name) => !name.startsWith('decisions/'))
    .sort((a, b) => a.split('/').length - b.split('/').length)
  return names
    .flatMap((name) => cut(name, read(name)))
    .map(({ at, ...passage }) => {
      const page = passage.section.replaceAll('/', '-')
      const id = seen.has(passage.id) ? `${page}-${passage.id}` : passage.id
      seen.add(id)
      const text = passage.text.replaceAll('http://localhost:8108', url)
      return { ...passage, id, text, url: `${url}/docs/${passage.section}${at && `#${at}`}` }
    })
}

/**
 * Loads the sample, unless it is there. A sample of other documentation than today's is replaced; a
 * collection `docs` that is not the sample is left alone.
 * @param {string} url
 * @param {string} apiKey
 * @param {string} [modelName] which language model answers
 * @returns {Promise<string>} what was done, in a sentence
 * @throws Error when the server refuses
 */
export async function loadSample(url, apiKey, modelName = 'local/extractive') {
  const server = new Server({ url, key: apiKey })

  /** What is there already stays. @param {string} path @param {object} body */
  const post = async (path, body) => {
    const response = await server.send('POST', path, { body })
    if (!response.ok && response.status !== 409) throw await refusal(response, `POST ${path}`)
    await response.body?.cancel()
  }

  const loadAssistant = async () => {
    if (await server.find('/assistants/default')) return
    await server.call('PUT', '/assistants/default', { body: assistant })
  }

  const documents = passages(url)
  const version = createHash('sha256')
    .update(JSON.stringify([schema, documents]))
    .digest('hex')
    .slice(0, 16)

  const present = await server.find('/collections/docs')
  if (present) {
    const { metadata } = present
    if (metadata?.sample === version) {
      await loadAssistant()
      return 'The sample is there: collection docs, model docs, assistant default.'
    }
    if (metadata?.sample === undefined) return 'A collection docs is there already: the sample is left out.'
    await server.call('DELETE', '/collections/docs')
  }

  // The version comes last: a load that was interrupted is then not taken for a whole one.
  await post('/collections', { ...schema, metadata: { sample: 'loading' } })
  const lines = documents.map((document) => ({ id: document.id, line: JSON.stringify(document) }))
  const [refused] = await sendBatch(server, 'docs', lines, 'upsert')
  if (refused) throw new Error(`The sample was refused: ${refused.error}`)
  await post('/collections', { name: 'docs_history', fields: HISTORY })
  await post('/conversations/models', { ...model, model_name: modelName })
  await loadAssistant()
  await server.call('PATCH', '/collections/docs', {
    body: { metadata: { sample: version, questions: QUESTIONS } },
  })
  return `Loaded the sample: ${documents.length} passages of documentation in collection docs, model docs, assistant default.`
}
