/** What is asked: chosen from what the key may list, and otherwise typed. The same in the chat, beside an answer, and for a set of questions. */
import { CheckField, type Draft, FormDialog, SelectField, TextField, useDraft } from '../parts/form'
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
  const asked = useDraft<ChatSettings>(own?.settings ?? settings.value, changed)
  const { draft, check } = asked
  const begins = chat.beginsWith(draft, choices)
  return (
    <FormDialog
      title="Chat settings"
      action={begins ? 'Apply in a new conversation' : 'Apply'}
      save={async () => chat.choose(draft, choices)}
      close={close}
    >
      <SettingsFields choices={choices} of={asked} />
      <CheckField label="Suggest what to ask next" {...check('followups')} />
      <p class="hint" role="status">
        {begins &&
          own &&
          `The open conversation goes to ${inSentence(own.settings)}, and cannot go on with another history. A new one begins.`}
      </p>
    </FormDialog>
  )
}

interface FieldsProps {
  choices: Choices
  of: Draft<ChatSettings>
}

/** The fields of what is asked: the same in the chat, beside an answer, and for a set of questions. */
export const SettingsFields = ({ choices, of: { draft, field } }: FieldsProps) => (
  <>
    {choices.assistants && choices.assistants.length > 0 && (
      <SelectField
        label="Ask"
        {...field('assistant')}
        options={[
          ['', 'A collection directly'],
          ...choices.assistants.map(({ name }) => [name, `The assistant ${name}`] as const),
        ]}
        hint="An assistant brings its own collections, model and instructions."
      />
    )}
    {draft.assistant === '' && (
      <>
        <TextField
          label="Collection"
          {...field('collection')}
          options={choices.collections?.map(({ name }) => name) ?? []}
          required
        />
        <TextField
          label="Conversation model"
          {...field('model')}
          options={choices.models?.map(({ id }) => id) ?? []}
          required
        />
        <TextField
          label="Fields to search"
          {...field('fields')}
          placeholder="all that can be searched"
          hint="Names separated by commas, such as title,text."
        />
        <TextField
          label="Documents per search"
          type="number"
          min="1"
          max="250"
          placeholder="10"
          {...field('limit')}
        />
        <TextField label="Filter" placeholder="tags:=guide" {...field('filter')} />
      </>
    )}
  </>
)
