/** The fields of what is asked: the same in the chat, beside an answer, and for a set of questions. */
import { useId } from 'preact/hooks'
import type { Choices } from './choices'
import type { ChatSettings } from './settings'

interface FieldsProps {
  choices: Choices
  draft: ChatSettings
  set: (part: Partial<ChatSettings>) => void
}

export function SettingsFields({ choices, draft, set }: FieldsProps) {
  const own = useId()
  const name = (field: string) => `${own}-${field}`
  const direct = draft.assistant === ''
  return (
    <>
      {(choices.assistants?.length ?? 0) > 0 && (
        <div>
          <label class="field-label" for={name('assistant')}>
            Ask
          </label>
          <select
            id={name('assistant')}
            class="input"
            value={draft.assistant}
            onChange={(event) => set({ assistant: event.currentTarget.value })}
          >
            <option value="">A collection directly</option>
            {choices.assistants?.map(({ name }) => (
              <option key={name} value={name}>
                The assistant {name}
              </option>
            ))}
          </select>
          <p class="hint">An assistant brings its own collections, model and instructions.</p>
        </div>
      )}
      {direct && (
        <>
          <div>
            <label class="field-label" for={name('collection')}>
              Collection
            </label>
            <Combo
              id={name('collection')}
              value={draft.collection}
              options={choices.collections?.map(({ name }) => name)}
              change={(collection) => set({ collection })}
            />
          </div>
          <div>
            <label class="field-label" for={name('model')}>
              Conversation model
            </label>
            <Combo
              id={name('model')}
              value={draft.model}
              options={choices.models?.map(({ id }) => id)}
              change={(model) => set({ model })}
            />
          </div>
          <div>
            <label class="field-label" for={name('fields')}>
              Fields to search
            </label>
            <input
              id={name('fields')}
              class="input"
              spellcheck={false}
              placeholder="all that can be searched"
              value={draft.fields}
              onInput={(event) => set({ fields: event.currentTarget.value })}
            />
            <p class="hint">Names separated by commas, such as title,text.</p>
          </div>
          <div>
            <label class="field-label" for={name('limit')}>
              Documents per search
            </label>
            <input
              id={name('limit')}
              class="input"
              type="number"
              min="1"
              max="250"
              placeholder="10"
              value={draft.limit}
              onInput={(event) => set({ limit: event.currentTarget.value })}
            />
          </div>
          <div>
            <label class="field-label" for={name('filter')}>
              Filter
            </label>
            <input
              id={name('filter')}
              class="input"
              spellcheck={false}
              placeholder="tags:=guide"
              value={draft.filter}
              onInput={(event) => set({ filter: event.currentTarget.value })}
            />
          </div>
        </>
      )}
    </>
  )
}

interface ComboProps {
  id: string
  value: string
  options: string[] | undefined
  change: (value: string) => void
}

function Combo({ id, value, options, change }: ComboProps) {
  return (
    <>
      <input
        id={id}
        class="input"
        list={`${id}-names`}
        spellcheck={false}
        required
        value={value}
        onInput={(event) => change(event.currentTarget.value)}
      />
      <datalist id={`${id}-names`}>
        {options?.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  )
}
