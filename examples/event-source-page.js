/** A page around `event-source.js`. A reload in the middle of an answer shows it from its beginning. */
import { ask, follow } from './event-source.js'

const [form] = document.forms
const [answer, state] = [document.querySelector('#answer'), document.querySelector('output')]

function show(id) {
  answer.textContent = ''
  state.textContent = ''
  const events = follow(id)
  events.addEventListener('delta', ({ data }) => answer.append(JSON.parse(data).text))
  events.addEventListener('error', ({ data }) => {
    // A connection that broke has no data, and the browser makes it again by itself.
    if (data === undefined) return
    events.close()
    state.textContent = JSON.parse(data).message
  })
}

form.onsubmit = async (event) => {
  event.preventDefault()
  sessionStorage.conversation = await ask(form.question.value)
  show(sessionStorage.conversation)
}
if (sessionStorage.conversation) show(sessionStorage.conversation)
