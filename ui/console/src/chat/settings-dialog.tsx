/** What the chat asks: chosen from what the key may list, and otherwise typed. */
import { useState } from 'preact/hooks'
import { Dialog } from '../parts/dialog'
import type { Chat } from './chat'
import type { Choices } from './choices'
import { type ChatSettings, changed, inSentence, settings } from './settings'
import { SettingsFields } from './settings-fields'

interface DialogProps {
  chat: Chat
  choices: Choices
  close: () => void
}

export function SettingsDialog({ chat, choices, close }: DialogProps) {
  const own = chat.own.value
  const [draft, setDraft] = useState<ChatSettings>(own?.settings ?? settings.value)
  const set = (part: Partial<ChatSettings>) => setDraft((before) => changed(before, part))
  const begins = chat.beginsWith(draft, choices)
  const submit = (event: Event) => {
    event.preventDefault()
    chat.choose(draft, choices)
    close()
  }
  return (
    <Dialog title="Chat settings" close={close}>
      <form class="dialog-body form" onSubmit={submit} autocomplete="off">
        <SettingsFields choices={choices} draft={draft} set={set} />
        <label class="check">
          <input
            type="checkbox"
            checked={draft.followups}
            onChange={(event) => set({ followups: event.currentTarget.checked })}
          />
          Suggest what to ask next
        </label>
        <p class="hint" role="status">
          {begins &&
            own &&
            `The open conversation goes to ${inSentence(own.settings)}, and cannot go on with another history. A new one begins.`}
        </p>
        <div class="dialog-foot">
          <button type="submit" class="button primary">
            {begins ? 'Apply in a new conversation' : 'Apply'}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
