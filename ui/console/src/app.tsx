/** The console: asks for a key where none is known, and otherwise shows the page that the address names. */
import { Component, type ComponentChildren, type ComponentType } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { place } from './address'
import { isTaken, key, Refusal, refused, setKey, useLoaded } from './api'
import { ChatPage } from './chat/chat-page'
import { PAGES, WITH_PAGES_BELOW } from './pages'
import { Form, useDraft } from './parts/form'
import { NotFound, Notice, Problem, Shown, useTitle } from './parts/page'
import { Shell } from './shell'

export function App() {
  if (key.value === '' || refused.value) return <SignIn />
  return (
    <Shell>
      <Boundary key={place.value.page}>
        <Current />
      </Boundary>
    </Shell>
  )
}

function Current() {
  const { page, rest } = place.value
  if (page === 'chat') return <ChatPage />
  const isKnown = Object.hasOwn(PAGES, page) && (rest.length === 0 || WITH_PAGES_BELOW.includes(page))
  const load = isKnown ? PAGES[page]?.load : undefined
  return load ? <Lazy key={page} load={load} /> : <NotFound />
}

const LOST = 'This page could not be loaded. Parley may have been updated meanwhile.'

function Lazy({ load }: { load: () => Promise<{ default: ComponentType }> }) {
  const loaded = useLoaded('page', () =>
    load().catch(() => {
      throw new Refusal(0, LOST)
    }),
  )
  const wasTried = useRef(false)
  const reload = () => {
    if (wasTried.current) location.reload()
    wasTried.current = true
    loaded.reload()
  }
  if (loaded.data) return <loaded.data.default />
  return (
    <div class="page">
      <h1 class="hidden" tabIndex={-1}>
        {loaded.error ? 'This page is not here' : 'Loading'}
      </h1>
      <Shown of={{ ...loaded, reload }}>{() => null}</Shown>
    </div>
  )
}

/** Keeps a fault of one page from taking the menu with it. */
class Boundary extends Component<{ children: ComponentChildren }, { fault?: unknown }> {
  static override getDerivedStateFromError = (fault: unknown) => ({ fault })

  override componentDidCatch(fault: unknown): void {
    console.error(fault)
  }

  override render() {
    if (this.state.fault === undefined) return this.props.children
    return (
      <div class="page">
        <h1 class="hidden">Something went wrong</h1>
        <Problem
          error={new Refusal(0, 'Something went wrong on this page. Reload it to go on.')}
          retry={() => location.reload()}
        />
      </div>
    )
  }
}

// =============================================================================
// Asks for an API key, and says why when it was refused.

function SignIn() {
  useTitle('')
  const { draft, text, check } = useDraft({ value: '', remember: false })
  const [denied, setDenied] = useState(refused.value && key.value !== '')
  const open = async () => {
    const given = draft.value.trim()
    if (given === '') return
    setDenied(false)
    if (await isTaken(given)) setKey(given, draft.remember)
    else setDenied(true)
  }
  return (
    <main class="sign-in">
      <Form class="sign-in-box frame form" action="Open the console" busy="Checking …" save={open}>
        <img src="/icon.svg" alt="" width="44" height="44" />
        <h1>Parley</h1>
        <p class="lead soft">Enter an API key to open the console. The admin key opens all of it.</p>
        {denied && (
          <Notice icon="warning">
            <p>The API key was refused. Enter another one.</p>
          </Notice>
        )}
        {text('value', 'API key', { type: 'password', required: true })}
        {check('remember', 'Remember it in this browser')}
        <p class="hint">Otherwise it is kept in this tab only, until it is closed.</p>
      </Form>
    </main>
  )
}
