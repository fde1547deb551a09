/** What the chat asks: chosen from what the key may list, and otherwise typed. */
import { useState } from 'preact/hooks'
import { Dialog } from '../parts/dialog'
import { CheckField, Form } from '../parts/form'
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
  return (
    <Dialog title="Chat settings" close={close}>
      <Form
        action={begins ? 'Apply in a new conversation' : 'Apply'}
        save={async () => {
          chat.choose(draft, choices)
          close()
        }}
      >
        <SettingsFields choices={choices} draft={draft} set={set} />
        <CheckField
          label="Suggest what to ask next"
          checked={draft.followups}
          change={(followups) => set({ followups })}
        />
        <p class="hint" role="status">
          {begins &&
            own &&
            `The open conversation goes to ${inSentence(own.settings)}, and cannot go on with another history. A new one begins.`}
        </p>
      </Form>
    </Dialog>
  )
}
