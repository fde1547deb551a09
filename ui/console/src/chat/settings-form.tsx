/** What is asked: chosen from what the key may list, and otherwise typed. The same in the chat, beside an answer, and for a set of questions. */
import { useState } from 'preact/hooks'
import { Dialog } from '../parts/dialog'
import { CheckField, Form, SelectField, TextField } from '../parts/form'
import type { Chat } from './chat'
import type { Choices } from './choices'
import { type ChatSettings, changed, inSentence, settings } from './settings'

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

interface FieldsProps {
  choices: Choices
  draft: ChatSettings
  set: (part: Partial<ChatSettings>) => void
}

/** The fields of what is asked: the same in the chat, beside an answer, and for a set of questions. */
export const SettingsFields = ({ choices, draft, set }: FieldsProps) => (
  <>
    {choices.assistants && choices.assistants.length > 0 && (
      <SelectField
        label="Ask"
        value={draft.assistant}
        options={[
          ['', 'A collection directly'],
          ...choices.assistants.map(({ name }) => [name, `The assistant ${name}`] as const),
        ]}
        hint="An assistant brings its own collections, model and instructions."
        change={(assistant) => set({ assistant })}
      />
    )}
    {draft.assistant === '' && (
      <>
        <TextField
          label="Collection"
          value={draft.collection}
          options={choices.collections?.map(({ name }) => name) ?? []}
          required
          change={(collection) => set({ collection })}
        />
        <TextField
          label="Conversation model"
          value={draft.model}
          options={choices.models?.map(({ id }) => id) ?? []}
          required
          change={(model) => set({ model })}
        />
        <TextField
          label="Fields to search"
          value={draft.fields}
          placeholder="all that can be searched"
          hint="Names separated by commas, such as title,text."
          change={(fields) => set({ fields })}
        />
        <TextField
          label="Documents per search"
          type="number"
          min="1"
          max="250"
          placeholder="10"
          value={draft.limit}
          change={(limit) => set({ limit })}
        />
        <TextField
          label="Filter"
          placeholder="tags:=guide"
          value={draft.filter}
          change={(filter) => set({ filter })}
        />
      </>
    )}
  </>
)
