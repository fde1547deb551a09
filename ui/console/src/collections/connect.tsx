/** Connects a collection of an existing cluster, and shows the fields that the cluster has. */
import { useState } from 'preact/hooks'
import { to } from '../address'
import { send, useAction } from '../api'
import { Dialog } from '../parts/dialog'
import { many } from '../parts/format'
import { Problem } from '../parts/states'
import { TextField } from '../parts/text-field'
import { draftOf, ENGINES, type EngineType, engineOf, SIGN_INS, type SignIn } from './engine'
import { Schema } from './schema'
import type { Collection } from './wire'

export default function Connect({ close }: { close: (connected: boolean) => void }) {
  const [made, setMade] = useState<Collection>()
  return (
    <Dialog title="Connect a cluster" close={() => close(made !== undefined)}>
      {made ? <Connected collection={made} /> : <ConnectForm done={setMade} />}
    </Dialog>
  )
}

/** What the cluster says of the collection. */
const Connected = ({ collection }: { collection: Collection }) => (
  <div class="dialog-body form">
    <p role="status">
      {collection.name} is connected. The cluster has {many(collection.num_documents, 'document')} there, with{' '}
      {many(collection.fields.length, 'field')}.
    </p>
    <Schema collection={collection} />
    <div class="dialog-foot">
      <a class="button primary" href={to(['collections', collection.name])}>
        Search {collection.name}
      </a>
    </div>
  </div>
)

function ConnectForm({ done }: { done: (made: Collection) => void }) {
  const [draft, setDraft] = useState(draftOf('typesense'))
  const set = (part: Partial<typeof draft>) => setDraft((before) => ({ ...before, ...part }))
  const { type, signIn } = draft
  const { busy, error, start } = useAction(async (_: Event) =>
    done(await send<Collection>('POST', '/collections', { name: draft.name, engine: engineOf(draft) })),
  )
  const engine = ENGINES[type]
  return (
    <form class="dialog-body form" onSubmit={start} autocomplete="off">
      <div>
        <label class="field-label" for="engine-type">
          Engine
        </label>
        <select
          id="engine-type"
          class="input"
          value={type}
          onChange={(event) =>
            setDraft({ ...draftOf(event.currentTarget.value as EngineType), name: draft.name })
          }
        >
          {Object.entries(ENGINES).map(([id, { title }]) => (
            <option key={id} value={id}>
              {title}
            </option>
          ))}
        </select>
      </div>
      <TextField
        id="engine-name"
        label="Name in Parley"
        value={draft.name}
        required
        change={(name) => set({ name })}
      />
      {engine.hasNodes && (
        <div>
          <label class="field-label" for="engine-nodes">
            Nodes
          </label>
          <textarea
            id="engine-nodes"
            class="input"
            rows={3}
            required
            spellcheck={false}
            placeholder={engine.example}
            aria-describedby="engine-nodes-hint"
            value={draft.nodes}
            onInput={(event) => set({ nodes: event.currentTarget.value })}
          />
          <p class="hint" id="engine-nodes-hint">
            One URL on each line. Parley must be allowed to call these hosts (ALLOWED_HOSTS).
          </p>
        </div>
      )}
      {engine.signIns.length > 1 && (
        <div>
          <label class="field-label" for="engine-sign-in">
            Credentials
          </label>
          <select
            id="engine-sign-in"
            class="input"
            value={signIn}
            onChange={(event) => set({ signIn: event.currentTarget.value as SignIn })}
          >
            {engine.signIns.map((id) => (
              <option key={id} value={id}>
                {SIGN_INS[id]}
              </option>
            ))}
          </select>
        </div>
      )}
      {signIn === 'password' && (
        <TextField
          id="engine-user"
          label="User"
          value={draft.user}
          required
          change={(user) => set({ user })}
        />
      )}
      {signIn === 'api_token' && (
        <TextField
          id="engine-account"
          label="Account ID"
          value={draft.account}
          required
          change={(account) => set({ account })}
        />
      )}
      {signIn !== 'none' && (
        <div>
          <TextField
            id="engine-secret"
            label={signIn === 'password' ? 'Password' : SIGN_INS[signIn]}
            type="password"
            value={draft.secret}
            required
            described="engine-secret-hint"
            change={(secret) => set({ secret })}
          />
          <p class="hint" id="engine-secret-hint">
            It is stored encrypted, sent to the nodes only, and never shown again.
          </p>
        </div>
      )}
      <TextField
        id="engine-there"
        label={engine.there}
        value={draft.there}
        placeholder={draft.name || 'the same name as in Parley'}
        change={(there) => set({ there })}
      />
      {error && <Problem error={error} />}
      <div class="dialog-foot">
        <button type="submit" class="button primary" disabled={busy}>
          {busy ? 'Asking the cluster …' : 'Connect'}
        </button>
      </div>
    </form>
  )
}
