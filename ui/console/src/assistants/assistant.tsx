/** One assistant: its form, and its widget beside it. */
import { useEffect, useState } from 'preact/hooks'
import { go, to } from '../address'
import { read, send, useAction, useLoaded } from '../api'
import { type Choices, loadChoices } from '../chat/choices'
import { Icon } from '../parts/icon'
import { Page } from '../parts/page'
import { Problem, Shown } from '../parts/states'
import { Preview } from './preview'
import type { AssistantBody, StoredAssistant } from './wire'

const EMPTY: AssistantBody = { model: '', collections: [], questions: [], followups: true }

export function AssistantPage({ name }: { name: string }) {
  const isNew = name === 'new'
  const loaded = useLoaded(`assistant ${name}`, async (signal): Promise<AssistantBody> => {
    if (isNew) return EMPTY
    const {
      name: _,
      created_at: __,
      updated_at: ___,
      ...body
    } = await read<StoredAssistant>(`/assistants/${encodeURIComponent(name)}`, signal)
    return body
  })
  const choices = useLoaded('choices', loadChoices)
  const [saved, setSaved] = useState(0)
  return (
    <Page
      title={isNew ? 'New assistant' : name}
      up={{ title: 'Assistants', href: to(['assistants']) }}
      lead={
        isNew
          ? 'Name it, choose what it searches and who answers.'
          : loaded.data && 'Saved changes show in the preview.'
      }
      actions={
        !isNew &&
        loaded.data && (
          <a class="button primary" href={`./?assistant=${encodeURIComponent(name)}`}>
            <Icon name="chat" />
            Ask
          </a>
        )
      }
    >
      <Shown of={loaded} lines={6}>
        {(body) => (
          <Shown of={choices} lines={6}>
            {(known) => (
              <div class="split">
                <Form
                  name={isNew ? undefined : name}
                  body={body}
                  choices={known}
                  saved={(as) => {
                    setSaved((count) => count + 1)
                    if (as !== name) go(to(['assistants', as]), { replace: true })
                  }}
                />
                {!isNew && <Preview key={saved} assistant={name} />}
              </div>
            )}
          </Shown>
        )}
      </Shown>
    </Page>
  )
}

interface FormProps {
  /** undefined for a new one */
  name: string | undefined
  body: AssistantBody
  choices: Choices
  saved: (name: string) => void
}

function Form({ name, body, choices, saved }: FormProps) {
  const [as, setAs] = useState(name ?? '')
  const [draft, setDraft] = useState(body)
  const [questions, setQuestions] = useState(body.questions.join('\n'))
  const [origins, setOrigins] = useState(body.allowed_origins?.join('\n') ?? '')
  const [isSaved, setSaved] = useState(false)
  const models = choices.models?.map(({ id }) => id) ?? []
  const model = draft.model || models[0] || ''
  const set = (part: Partial<AssistantBody>) => {
    setDraft((before) => ({ ...before, ...part }))
    setSaved(false)
  }
  useEffect(() => setDraft(body), [body])
  const lines = (text: string) =>
    text
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean)
  const { busy, error, start } = useAction(async (_: Event) => {
    const { allowed_origins: __, system_prompt: prompt, ...rest } = draft
    setSaved(false)
    await send('PUT', `/assistants/${encodeURIComponent(as)}`, {
      ...rest,
      model,
      questions: lines(questions),
      ...(prompt && { system_prompt: prompt }),
      ...(lines(origins).length > 0 && { allowed_origins: lines(origins) }),
    })
    setSaved(true)
    saved(as)
  })
  return (
    <form class="panel-card form" onSubmit={start} autocomplete="off">
      {name === undefined && (
        <div>
          <label class="field-label" for="assistant-name">
            Name
          </label>
          <input
            id="assistant-name"
            class="input"
            required
            pattern="[a-z0-9\-]{1,64}"
            title="1 to 64 lower-case letters, digits and hyphens"
            spellcheck={false}
            value={as}
            onInput={(event) => setAs(event.currentTarget.value)}
          />
        </div>
      )}
      {draft.searches ? (
        <p class="hint">
          It has searches of its own, on {draft.searches.map(({ collection }) => collection).join(', ')}:
          change them over the API.
        </p>
      ) : (
        <fieldset class="choices">
          <legend class="field-label">Collections</legend>
          {choices.collections?.length === 0 && (
            <p class="hint">
              There is none yet. <a href={to(['import'])}>Import files first</a>.
            </p>
          )}
          {choices.collections?.map((each) => (
            <label key={each.name} class="check">
              <input
                type="checkbox"
                checked={draft.collections?.includes(each.name) ?? false}
                onChange={(event) => {
                  const others = (draft.collections ?? []).filter((one) => one !== each.name)
                  set({ collections: event.currentTarget.checked ? [...others, each.name] : others })
                }}
              />
              {each.name}
            </label>
          ))}
        </fieldset>
      )}
      <div>
        <label class="field-label" for="assistant-model">
          Model
        </label>
        <select
          id="assistant-model"
          class="input"
          required
          value={model}
          onChange={(event) => set({ model: event.currentTarget.value })}
        >
          {models.map((id) => (
            <option key={id} value={id}>
              {id}
            </option>
          ))}
        </select>
        {models.length === 0 && (
          <p class="hint">
            There is none yet. <a href={to(['models'], { new: '1' })}>Make one first</a>.
          </p>
        )}
      </div>
      <div>
        <label class="field-label" for="assistant-prompt">
          Instructions
        </label>
        <textarea
          id="assistant-prompt"
          class="input"
          rows={4}
          placeholder="Leave empty to use the model's prompt"
          value={draft.system_prompt ?? ''}
          onInput={(event) => set({ system_prompt: event.currentTarget.value })}
        />
      </div>
      <div>
        <label class="field-label" for="assistant-questions">
          First questions, one a line
        </label>
        <textarea
          id="assistant-questions"
          class="input"
          rows={3}
          value={questions}
          onInput={(event) => {
            setQuestions(event.currentTarget.value)
            setSaved(false)
          }}
        />
      </div>
      <div>
        <label class="field-label" for="assistant-origins">
          Allowed websites (one per line)
        </label>
        <textarea
          id="assistant-origins"
          class="input"
          rows={2}
          spellcheck={false}
          placeholder="Empty: every origin"
          value={origins}
          onInput={(event) => {
            setOrigins(event.currentTarget.value)
            setSaved(false)
          }}
        />
      </div>
      <label class="check">
        <input
          type="checkbox"
          checked={draft.followups ?? false}
          onChange={(event) => set({ followups: event.currentTarget.checked })}
        />
        Suggest what to ask next
      </label>
      <label class="check">
        <input
          type="checkbox"
          checked={draft.retrieval === 'agentic'}
          onChange={(event) => set({ retrieval: event.currentTarget.checked ? 'agentic' : 'plain' })}
        />
        Let the model ask for further searches, at the price of two calls
      </label>
      {error && <Problem error={error} />}
      <div class="page-actions">
        <button type="submit" class="button primary" disabled={busy}>
          {busy ? 'Saving …' : 'Save'}
        </button>
        <span role="status" class="soft saved">
          {isSaved && 'Saved.'}
        </span>
      </div>
    </form>
  )
}
