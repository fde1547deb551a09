/** What the chat asks: chosen from what the key may list, and otherwise typed. */
import { useState } from 'preact/hooks'
import { Dialog } from '../parts/dialog'
import type { Choices } from './choices'
import { type ChatSettings, choose, settings } from './settings'
import { SettingsFields } from './settings-fields'

export function SettingsDialog({ choices, close }: { choices: Choices; close: () => void }) {
  const [draft, setDraft] = useState<ChatSettings>(settings.value)
  const set = (part: Partial<ChatSettings>) => setDraft((before) => ({ ...before, ...part }))
  const submit = (event: Event) => {
    event.preventDefault()
    choose(draft)
    close()
  }
  return (
    <Dialog title="Settings of this chat" close={close}>
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
        <div class="dialog-foot">
          <button type="submit" class="button primary">
            Use these
          </button>
        </div>
      </form>
    </Dialog>
  )
}
