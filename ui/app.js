/** The page on /: asks a collection through a conversation model and shows answers with their sources. */
import { decoded } from './address.js'
import { citedDocuments, documentsOf } from './documents.js'
import { DEFAULT_KEY } from './key.js'
import { element } from './render.js'
import {
  AskError,
  ask,
  call,
  finishedTurns,
  inWords,
  joinTurn,
  readTurns,
  STOPPED,
  stopTurn,
} from './stream.js'
import { openTurn } from './turn.js'

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
/** @type {Record<string, string>} */
const defaults = { key: DEFAULT_KEY, collection: 'docs', model: 'docs', fields: '' }

/** @param {string} name @returns {HTMLInputElement} */
const input = (name) => byId(name)
/** @param {string} name */
const setting = (name) => input(name).value.trim()

/** @type {string | undefined} */
let conversationId
/** ends the reading of what is being read @type {AbortController | undefined} */
let running
let stopWanted = false
/** on the page */
let turns = 0
/** of those, the ones that are history */
let finished = 0

/** Fields of the collection by their use; undefined where the key may not read the schema. */
async function schema() {
  const response = await call(`/collections/${encodeURIComponent(setting('collection'))}`, setting('key'))
  return response.json()
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
  stop.disabled = false
  fresh.hidden = turns === 0
}

/** What the page says of a fault. @param {unknown} error */
function inWordsOf(error) {
  if (error instanceof AskError) return error.message
  console.error(error)
  return 'Something went wrong on this page. Reload it.'
}

/**
 * Shows the turns of a stream as they come.
 * @param {Response} response
 * @param {AbortSignal} signal
 * @param {ReturnType<typeof openTurn>} [waiting] the first turn, where it is on the page already
 */
async function show(response, signal, waiting) {
  let turn = waiting
  /** @type {Record<string, unknown>[]} */
  let documents = []
  /** @type {import('./render.js').Citation[]} */
  let citations = []
  /** @type {{ model: string } | undefined} */
  let usage
  /** @type {string[]} */
  let refusals = []
  try {
    const reading = { id: String(conversationId), key: setting('key'), signal }
    for await (const { type, data } of readTurns(response, reading)) {
      if (type === 'question') {
        turn ??= begin(data.question)
        documents = []
        citations = []
        usage = undefined
      } else if (type === 'retrieval') {
        documents = documentsOf(data.replies)
        refusals = data.replies.flatMap((/** @type {any} */ { error }) => (error ? [error] : []))
      } else if (type === 'delta') turn?.write(data.text)
      else if (type === 'citation') citations.push(data)
      else if (type === 'usage') usage = data.usage
      else if (type === 'done' || type === 'error') {
        if (type === 'error') turn?.fail(inWords(data.status, data.message), data.message === STOPPED)
        else if (data.answer === '' && refusals[0] !== undefined) turn?.fail(refusals[0])
        else {
          turn?.finish({ answer: data.answer, citations, usage, documents })
          finished += 1
        }
        turn = undefined
      }
    }
    turn?.fail('This answer did not come to its end. Ask again.')
  } catch (error) {
    if (!signal.aborted) turn?.fail(inWordsOf(error))
  }
}

/** Puts a question on the page. @param {string} question */
function begin(question) {
  turns += 1
  welcome.hidden = true
  grow()
  setBusy(running !== undefined)
  return openTurn(log, question)
}

/** @param {string} question */
async function submit(question) {
  if (question.trim() === '' || running !== undefined) return
  settingsPanel.open = false
  questionBox.value = ''
  const reading = new AbortController()
  running = reading
  const turn = begin(question.trim())
  const asked = { question: question.trim(), conversationId, signal: reading.signal }
  const key = setting('key')
  const where = { collection: setting('collection'), model: setting('model'), fields: setting('fields') }
  try {
    const { id, answer } = await ask({ ...asked, ...where, key })
    conversationId = id
    if (idInAddress() !== id) history.pushState(null, '', `#${id}`)
    if (stopWanted) stopRunning()
    await show(answer, reading.signal, turn)
  } catch (error) {
    if (!reading.signal.aborted) turn.fail(inWordsOf(error))
  }
  ended(reading)
}

/** @param {AbortController} reading what has been read to its end */
function ended(reading) {
  // Somebody has gone to another conversation meanwhile.
  if (running !== reading) return
  running = undefined
  stopWanted = false
  // A conversation without a finished turn cannot be gone on with: the next question begins another one.
  if (finished === 0) conversationId = undefined
  setBusy(false)
  questionBox.focus({ preventScroll: true })
}

/** Stops the running turn, for all who read it; before its conversation has an id, as soon as it has one. */
async function stopRunning() {
  stopWanted = true
  stop.disabled = true
  if (running === undefined || conversationId === undefined) return
  stopWanted = false
  try {
    await stopTurn(conversationId, setting('key'))
  } catch (error) {
    stop.disabled = false
    log.lastElementChild?.append(
      element('p', { class: 'error', role: 'alert' }, `It could not be stopped. ${inWordsOf(error)}`),
    )
  }
}

const idInAddress = () => decoded(location.hash.slice(1)) || undefined

/** Shows the conversation that the address names, and reads on where one of its turns is running. */
async function open() {
  const id = idInAddress()
  if (id === undefined) return
  const reading = new AbortController()
  const { signal } = reading
  running = reading
  conversationId = id
  welcome.hidden = true
  setBusy(true)
  const key = setting('key')
  try {
    // While its first turn is running there may be none to list.
    const past = await finishedTurns(id, key).catch((error) => {
      if (error.status === 404) return []
      throw error
    })
    const found = await citedDocuments(past, key)
    if (signal.aborted) return
    for (const { question, answer, citations, usage } of past) {
      begin(question).finish({ answer, citations, usage, documents: found(citations) })
      finished += 1
    }
    const lastTurn = past.at(-1)?.turn
    await show(await joinTurn(id, key, { lastTurn, signal }), signal)
  } catch (error) {
    // A conversation that was not held on this server can be listed and has no events.
    if (!signal.aborted && turns === 0) {
      restart()
      byId('welcome-text').textContent = inWordsOf(error)
    }
  }
  ended(reading)
}

/** The question box is as high as its text, up to a point. */
function grow() {
  questionBox.rows = Math.min(6, Math.max(1, questionBox.value.split('\n').length))
  questionBox.placeholder = turns === 0 ? 'Ask a question' : 'Ask a follow-up'
}

/** Leaves the conversation. A turn that is running goes on without its reader. */
function restart() {
  running?.abort()
  running = undefined
  stopWanted = false
  conversationId = undefined
  turns = 0
  finished = 0
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
stop.addEventListener('click', stopRunning)
fresh.addEventListener('click', () => {
  history.pushState(null, '', location.pathname + location.search)
  restart()
})
// Back, forward, and another address typed.
addEventListener('popstate', () => {
  if (idInAddress() === conversationId) return
  restart()
  open()
})
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
  // Somebody who was sent a link has seen nothing of its conversation without a key.
  const unread = turns === 0
  if (!unread) history.pushState(null, '', location.pathname + location.search)
  restart()
  introduce()
  if (unread) open()
})

introduce()
if (setting('key') !== '') open()
