/** What the chat asks: chosen from what the key may list, and otherwise typed. */
import { useState } from 'preact/hooks'
import { Dialog } from '../parts/dialog'
import type { Choices } from './choices'
import { type ChatSettings, choose, settings } from './settings'

export function SettingsDialog({ choices, close }: { choices: Choices; close: () => void }) {
  const [draft, setDraft] = useState<ChatSettings>(settings.value)
  const set = (part: Partial<ChatSettings>) => setDraft((before) => ({ ...before, ...part }))
  const direct = draft.assistant === ''
  const submit = (event: Event) => {
    event.preventDefault()
    choose(draft)
    close()
  }
  return (
    <Dialog title="Settings of this chat" close={close}>
      <form class="dialog-body form" onSubmit={submit} autocomplete="off">
        {(choices.assistants?.length ?? 0) > 0 && (
          <div>
            <label class="field-label" for="assistant">
              Ask
            </label>
            <select
              id="assistant"
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
              <label class="field-label" for="collection">
                Collection
              </label>
              <Combo
                id="collection"
                value={draft.collection}
                options={choices.collections?.map(({ name }) => name)}
                change={(collection) => set({ collection })}
              />
            </div>
            <div>
              <label class="field-label" for="model">
                Conversation model
              </label>
              <Combo
                id="model"
                value={draft.model}
                options={choices.models?.map(({ id }) => id)}
                change={(model) => set({ model })}
              />
            </div>
            <div>
              <label class="field-label" for="fields">
                Fields to search
              </label>
              <input
                id="fields"
                class="input"
                spellcheck={false}
                placeholder="all that can be searched"
                value={draft.fields}
                onInput={(event) => set({ fields: event.currentTarget.value })}
              />
              <p class="hint">Names separated by commas, such as title,text.</p>
            </div>
          </>
        )}
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
