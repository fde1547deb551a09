/** The field for a question. */
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { LONGEST_QUESTION } from '../../../../src/turn/question-length'
import { Draft } from '../../../widget/src/storage'
import { Icon } from '../parts/icon'
import type { Chat } from './chat'
import { WORDS } from './words'

const draft = new Draft(location.origin, 'console')

export function Composer({ chat, started }: { chat: Chat; started: boolean }) {
  const [text, setText] = useState(draft.text)
  const isTooLong = text.length > LONGEST_QUESTION
  const type = (typed: string) => {
    draft.text = typed
    setText(typed)
  }
  const field = useRef<HTMLTextAreaElement>(null)
  const busy = chat.busy.value
  const wasBusy = useRef(false)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the field is as high as its text
  useLayoutEffect(() => {
    const element = field.current
    if (!element) return
    element.style.height = 'auto'
    element.style.height = `${Math.min(element.scrollHeight, 160)}px`
  }, [text])
  useLayoutEffect(() => {
    const element = document.activeElement
    // The button that had the focus is gone, or somebody waits for the answer in the field.
    if (wasBusy.current && !busy && (element === document.body || element === null)) {
      field.current?.focus({ preventScroll: true })
    }
    wasBusy.current = busy
  }, [busy])
  const submit = (event: Event) => {
    event.preventDefault()
    if (busy || isTooLong || text.trim() === '') return
    chat.ask(text)
    type('')
  }
  return (
    <form class="composer" onSubmit={submit}>
      <div class="field">
        <label for="question" class="hidden">
          Your question
        </label>
        <textarea
          id="question"
          ref={field}
          rows={1}
          placeholder={started ? 'Ask a follow-up' : 'Ask a question'}
          value={text}
          onInput={(event) => type(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) submit(event)
          }}
        />
        {busy ? (
          <button type="button" class="send stop" aria-label="Stop" title="Stop" onClick={() => chat.stop()}>
            <Icon name="stop" />
          </button>
        ) : (
          <button
            type="submit"
            class={text.trim() === '' ? 'send' : 'send ready'}
            aria-label="Ask"
            title="Ask"
          >
            <Icon name="send" />
          </button>
        )}
      </div>
      {isTooLong && (
        <p class="limit" role="status">
          {WORDS.tooLong}
        </p>
      )}
    </form>
  )
}
