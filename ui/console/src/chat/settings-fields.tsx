/** The fields of what is asked: the same in the chat, beside an answer, and for a set of questions. */
import { SelectField, TextField } from '../parts/form'
import type { Choices } from './choices'
import type { ChatSettings } from './settings'

interface FieldsProps {
  choices: Choices
  draft: ChatSettings
  set: (part: Partial<ChatSettings>) => void
}

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
