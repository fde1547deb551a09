/** A page around `ai-chat.js`. */
import { ask } from './ai-chat.js'

const [form] = document.forms
const [answer, state] = [document.querySelector('#answer'), document.querySelector('output')]

form.onsubmit = async (event) => {
  event.preventDefault()
  answer.textContent = ''
  state.textContent = ''
  try {
    await ask(form.question.value, (text) => answer.append(text))
    state.textContent = 'ready'
  } catch (error) {
    state.textContent = error.message
  }
}
