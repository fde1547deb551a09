/** Asks for an API key, and says why when it was refused. */
import { useState } from 'preact/hooks'
import { isTaken, key, refused, setKey, useAction } from './api'
import { CheckField, TextField } from './parts/form'
import { useTitle } from './parts/page'
import { Notice, Problem } from './parts/states'

export function SignIn() {
  useTitle('')
  const [value, setValue] = useState('')
  const [remember, setRemember] = useState(false)
  const [denied, setDenied] = useState(refused.value && key.value !== '')
  const { busy, error, start } = useAction(async (_: Event) => {
    const given = value.trim()
    if (given === '') return
    setDenied(false)
    if (await isTaken(given)) setKey(given, remember)
    else setDenied(true)
  })
  return (
    <main class="sign-in">
      <form class="sign-in-box pile" onSubmit={start} autocomplete="off">
        <img src="/icon.svg" alt="" width="44" height="44" />
        <h1>Parley</h1>
        <p class="lead">Enter an API key to open the console. The admin key opens all of it.</p>
        {denied && (
          <Notice icon="warning">
            <p>The API key was refused. Enter another one.</p>
          </Notice>
        )}
        {error && <Problem error={error} />}
        <TextField label="API key" type="password" required value={value} change={setValue} />
        <CheckField label="Remember it in this browser" checked={remember} change={setRemember} />
        <p class="hint">Otherwise it is kept in this tab only, until it is closed.</p>
        <button type="submit" class="button primary wide" disabled={busy}>
          {busy ? 'Checking …' : 'Open the console'}
        </button>
      </form>
    </main>
  )
}
