/** The page on /: asks a collection through a conversation model and shows answers with their sources. */
import { citedAnswer, element, inline, sourceCard, sourcesOf } from './render.js'
import { AskError, ask, call } from './stream.js'

/** @template {HTMLElement} T @param {string} id @returns {T} */
const byId = (id) => /** @type {T} */ (document.getElementById(id))

const log = byId('log')
const welcome = byId('welcome')
/** @type {HTMLTextAreaElement} */ const questionBox = byId('question')
/** @type {HTMLButtonElement} */ const send = byId('send')
/** @type {HTMLButtonElement} */ const stop = byId('stop')
/** @type {HTMLButtonElement} */ const fresh = byId('new')
/** @type {HTMLDetailsElement} */ const settingsPanel = byId('settings')

const SETTINGS = ['key', 'collection', 'model', 'fields']
const isLocal = /^(localhost|127\.0\.0\.1|\[::1\])$/.test(location.hostname)
/** @type {Record<string, string>} */
const defaults = { key: isLocal ? 'xyz' : '', collection: 'docs', model: 'docs', fields: '' }

/** @param {string} name @returns {HTMLInputElement} */
const input = (name) => byId(name)
/** @param {string} name */
const setting = (name) => input(name).value.trim()

/** @type {string | undefined} */
let conversationId
/** @type {AbortController | undefined} */
let running
let turns = 0

/** Fields of the collection by their use; undefined where the key may not read the schema. */
async function schema() {
  const response = await call(`/collections/${encodeURIComponent(setting('collection'))}`, setting('key'))
  return response.json()
}

/**
 * What to search and what to leave out of the prompt: by the schema, or as written under Settings.
 * @returns {Promise<{ queryBy: string, exclude: string }>}
 */
async function plan() {
  const written = setting('fields')
  /** @type {{ name: string, type: string, index?: boolean, embed?: unknown, num_dim?: number }[]} */
  const fields = await schema().then(
    (found) => found.fields,
    () => [],
  )
  const embeddings = fields.filter((field) => field.embed !== undefined)
  const vectors = fields.filter((field) => field.embed !== undefined || field.num_dim !== undefined)
  const texts = fields.filter((field) => field.index !== false && /^string/.test(field.type))
  // One embedding field is all that a search takes.
  const chosen = [...embeddings.slice(0, 1), ...texts].map((field) => field.name).join(',')
  return {
    queryBy: written || chosen || 'embedding',
    exclude: vectors.map((field) => field.name).join(',') || 'embedding',
  }
}

/** Fills the page for the chosen collection: suggested questions, or what is missing. */
async function introduce() {
  const list = byId('suggestions')
  const text = byId('welcome-text')
  list.replaceChildren()
  if (setting('key') === '') {
    text.textContent = 'Enter an API key under Settings to begin.'
    settingsPanel.open = true
    return
  }
  text.textContent = 'Answers come with their sources, and you can ask on from there.'
  try {
    const { metadata } = await schema()
    const questions = Array.isArray(metadata?.questions) ? metadata.questions : []
    for (const question of questions.slice(0, 6)) {
      const button = element('button', { type: 'button', class: 'suggestion' }, String(question))
      button.addEventListener('click', () => submit(String(question)))
      list.append(element('li', {}, button))
    }
  } catch (error) {
    text.textContent = /** @type {Error} */ (error).message
  }
}

/** Offers the names that the key may list. */
async function offerNames() {
  /** @param {string} path @param {string} target @param {string} property */
  const fill = async (path, target, property) => {
    const response = await call(path, setting('key')).catch(() => undefined)
    const rows = (await response?.json()) ?? []
    byId(target).replaceChildren(
      ...rows.map((/** @type {Record<string, unknown>} */ row) =>
        element('option', { value: String(row[property]) }),
      ),
    )
  }
  await Promise.all([
    fill('/collections', 'collections', 'name'),
    fill('/conversations/models', 'models', 'id'),
  ])
}

/** @param {boolean} on */
function setBusy(on) {
  send.hidden = on
  stop.hidden = !on
  fresh.hidden = turns === 0
}

/** Keeps the end in view for a reader who is there; one who has scrolled up is left alone. */
function follow() {
  const page = document.documentElement
  const distance = page.scrollHeight - page.scrollTop - page.clientHeight
  if (distance < 160) page.scrollTop = page.scrollHeight
}

/** One question with its answer, as an element and the ways to fill it. @param {string} question */
function openTurn(question) {
  turns += 1
  const number = turns
  const answer = element('div', { class: 'answer', 'aria-busy': 'true' })
  const waiting = element('p', { class: 'waiting' }, 'Searching')
  answer.append(waiting)
  const aside = element('aside', { class: 'sources', 'aria-label': 'Sources' })
  const said = element('h3', { class: 'question' }, question)
  const article = element('article', { class: 'turn' }, said, answer, aside)
  log.append(article)
  article.scrollIntoView({ block: 'start' })
  let text = ''

  return {
    /** @param {string} piece */
    write(piece) {
      text += piece
      answer.replaceChildren(...inline(text))
      follow()
    },
    /** @param {string} message */
    fail(message) {
      waiting.remove()
      answer.append(element('p', { class: 'error', role: 'alert' }, message))
      answer.setAttribute('aria-busy', 'false')
      follow()
    },
    /** @param {any} reply */
    finish(reply) {
      const { answer: whole, citations = [], usage } = reply.conversation
      const results = reply.results ?? [reply]
      const hits = results.flatMap(
        (/** @type {any} */ result) =>
          result.hits ?? result.grouped_hits?.flatMap((/** @type {any} */ group) => group.hits) ?? [],
      )
      const sources = sourcesOf(hits, citations)
      const prefix = `source-${number}`
      answer.replaceChildren(
        ...citedAnswer(whole, citations, sources, (source) => reveal(article, prefix, source.number)),
      )
      answer.setAttribute('aria-busy', 'false')
      fillSources(aside, sources, prefix)
      if (usage?.model) answer.append(element('p', { class: 'note' }, `Answered by ${usage.model}`))
      follow()
    },
  }
}

/**
 * Cited sources first; the rest of what was found on demand.
 * @param {HTMLElement} aside
 * @param {import('./render.js').Source[]} sources
 * @param {string} prefix
 */
function fillSources(aside, sources, prefix) {
  if (sources.length === 0) {
    aside.append(element('p', { class: 'note' }, 'Nothing was found for this question.'))
    return
  }
  const used = sources.filter((source) => source.cited)
  const shown = used.length > 0 ? used : sources.slice(0, 3)
  const others = sources.filter((source) => !shown.includes(source))
  aside.append(element('h4', {}, used.length > 0 ? 'Sources' : 'Found'))
  aside.append(element('ol', { class: 'cards' }, ...shown.map((source) => sourceCard(source, prefix))))
  if (others.length > 0) {
    const list = element('ol', { class: 'cards' }, ...others.map((source) => sourceCard(source, prefix)))
    aside.append(element('details', {}, element('summary', {}, `${others.length} more found`), list))
  }
}

/**
 * Takes the reader to a source.
 * @param {HTMLElement} article
 * @param {string} prefix
 * @param {number} number
 */
function reveal(article, prefix, number) {
  const card = byId(`${prefix}-${number}`)
  for (const lit of article.querySelectorAll('.lit')) lit.classList.remove('lit')
  card.classList.add('lit')
  for (const part of article.querySelectorAll(`[data-source="${number}"]`)) part.classList.add('lit')
  card.scrollIntoView({ block: 'nearest', behavior: 'smooth' })
  card.focus({ preventScroll: true })
}

/** @param {string} question */
async function submit(question) {
  if (question.trim() === '' || running !== undefined) return
  welcome.hidden = true
  settingsPanel.open = false
  questionBox.value = ''
  grow()
  const turn = openTurn(question.trim())
  running = new AbortController()
  setBusy(true)
  try {
    const { queryBy, exclude } = await plan()
    const chosen = { key: setting('key'), collection: setting('collection'), model: setting('model') }
    const reply = await ask(
      { ...chosen, question: question.trim(), queryBy, exclude, conversationId },
      running.signal,
      (piece, id) => {
        conversationId = id
        turn.write(piece)
      },
    )
    conversationId = reply.conversation.conversation_id
    turn.finish(reply)
  } catch (error) {
    const stopped = /** @type {Error} */ (error).name === 'AbortError'
    if (stopped) turn.fail('Stopped. The rest of this answer is not shown.')
    else
      turn.fail(error instanceof AskError ? error.message : 'Something went wrong on this page. Reload it.')
    if (!stopped && !(error instanceof AskError)) console.error(error)
  } finally {
    running = undefined
    setBusy(false)
    questionBox.focus({ preventScroll: true })
  }
}

/** The question box is as high as its text, up to a point. */
function grow() {
  questionBox.rows = Math.min(6, Math.max(1, questionBox.value.split('\n').length))
  questionBox.placeholder = turns === 0 ? 'Ask a question' : 'Ask a follow-up'
}

function restart() {
  running?.abort()
  conversationId = undefined
  turns = 0
  log.replaceChildren()
  welcome.hidden = false
  setBusy(false)
  grow()
  questionBox.focus()
}

const fromAddress = new URLSearchParams(location.search)
for (const name of SETTINGS) {
  // A key in an address would end up in histories and logs.
  const given = name === 'key' ? null : fromAddress.get(name)
  input(name).value = given ?? sessionStorage.getItem(`parley.${name}`) ?? defaults[name] ?? ''
}

byId('ask').addEventListener('submit', (event) => {
  event.preventDefault()
  submit(questionBox.value)
})
questionBox.addEventListener('input', grow)
questionBox.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
  event.preventDefault()
  submit(questionBox.value)
})
stop.addEventListener('click', () => running?.abort())
fresh.addEventListener('click', restart)
settingsPanel.addEventListener('toggle', () => settingsPanel.open && offerNames())
settingsPanel.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape') return
  settingsPanel.open = false
  settingsPanel.querySelector('summary')?.focus()
})
byId('settings-form').addEventListener('submit', (event) => {
  event.preventDefault()
  for (const name of SETTINGS) sessionStorage.setItem(`parley.${name}`, setting(name))
  settingsPanel.open = false
  restart()
  introduce()
})

introduce()
