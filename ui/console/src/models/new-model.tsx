/** A new conversation model, with a place for its conversations. */
import { useState } from 'preact/hooks'
import { useAction } from '../api'
import { server } from '../import/server'
import { Dialog } from '../parts/dialog'
import { Problem } from '../parts/states'
import { TextField } from '../parts/text-field'
import { makeHistory } from './history'

const MAX_BYTES = 16_384
const MAX_TOKENS = 1_024
const EXAMPLES = [
  'local/extractive',
  'cloudflare/@cf/meta/llama-3.3-70b-instruct-fp8-fast',
  'openai/gpt-4o-mini',
  'anthropic/claude-sonnet-4-5',
  'google/gemini-2.5-flash',
]

export function NewModel({ close }: { close: (made: boolean) => void }) {
  const [draft, setDraft] = useState({ id: '', name: 'local/extractive', apiKey: '', url: '' })
  const set = (part: Partial<typeof draft>) => setDraft((before) => ({ ...before, ...part }))
  const isOpenAi = draft.name.startsWith('openai/')
  const { busy, error, start } = useAction(async (_: Event) => {
    const history = `${draft.id}_history`
    await makeHistory(history)
    await server.call('POST', '/conversations/models', {
      body: {
        id: draft.id,
        model_name: draft.name,
        history_collection: history,
        max_bytes: MAX_BYTES,
        max_tokens: MAX_TOKENS,
        ...(draft.apiKey !== '' && { api_key: draft.apiKey }),
        ...(isOpenAi && draft.url !== '' && { openai_url: draft.url }),
      },
    })
    close(true)
  })
  return (
    <Dialog title="New model" close={() => close(false)}>
      <form class="dialog-body form" onSubmit={start} autocomplete="off">
        <TextField id="model-id" label="Name" value={draft.id} required change={(id) => set({ id })} />
        <div>
          <TextField
            id="model-name"
            label="Language model"
            value={draft.name}
            required
            list="model-examples"
            change={(name) => set({ name })}
          />
          <datalist id="model-examples">
            {EXAMPLES.map((each) => (
              <option key={each} value={each} />
            ))}
          </datalist>
          <p class="hint">Provider and model, such as openai/gpt-4o-mini. local/extractive is built in.</p>
        </div>
        {!/^(local|cloudflare)\//.test(draft.name) && (
          <div>
            <TextField
              id="model-key"
              label="The provider's API key"
              type="password"
              value={draft.apiKey}
              change={(apiKey) => set({ apiKey })}
            />
            <p class="hint">It is stored encrypted, and never shown again.</p>
          </div>
        )}
        {isOpenAi && (
          <TextField
            id="model-url"
            label="Address"
            value={draft.url}
            placeholder="https://api.openai.com, or any server that speaks its API"
            change={(address) => set({ url: address })}
          />
        )}
        {error && <Problem error={error} />}
        <div class="dialog-foot">
          <button type="submit" class="button primary" disabled={busy}>
            {busy ? 'Asking the provider …' : 'Create model'}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
