/** The console: asks for a key where none is known, and otherwise shows the page that the address names. */
import { Component, type ComponentChildren, type ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { NEW, place } from './address'
import { Refusal } from './api'
import { ChatPage } from './chat/chat-page'
import { key, refused } from './key'
import { Page } from './parts/page'
import { Empty, Loading, Problem } from './parts/states'
import { Shell } from './shell'
import { SignIn } from './sign-in'

type PageModule = { default: ComponentType }

/** Pages by the first word of their path. The chat is part of the first load. */
const PAGES: Record<string, () => Promise<PageModule>> = {
  collections: () => import('./collections/page'),
  import: () => import('./import/page'),
  conversations: () => import('./conversations/page'),
  start: () => import('./start/page'),
  compare: () => import('./compare/page'),
  sets: () => import('./sets/page'),
  usage: () => import('./usage/page'),
  keys: () => import('./keys/page'),
  models: () => import('./models/page'),
  assistants: () => import('./assistants/page'),
}

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
  const { page } = place.value
  if (page === 'chat') return <ChatPage />
  const load = Object.hasOwn(PAGES, page) ? PAGES[page] : undefined
  return load ? <Lazy key={page} load={load} /> : <NotFound />
}

function NotFound() {
  return (
    <Page title="Page not found">
      <Empty icon="search" title="There is nothing at this address">
        <p>The link may be old, or mistyped. Choose a page from the menu, or ask a question.</p>
        <a class="button primary" href={NEW}>
          Ask a question
        </a>
      </Empty>
    </Page>
  )
}

function Lazy({ load }: { load: () => Promise<PageModule> }) {
  const [loaded, setLoaded] = useState<{ Shown?: ComponentType; failed?: boolean }>({})
  const [tries, setTries] = useState(0)
  // biome-ignore lint/correctness/useExhaustiveDependencies: `tries` asks for the same once more
  useEffect(() => {
    setLoaded({})
    load().then(
      ({ default: Shown }) => setLoaded({ Shown }),
      () => setLoaded({ failed: true }),
    )
  }, [tries])
  const { Shown, failed } = loaded
  if (Shown) return <Shown />
  return (
    <div class="page">
      {failed ? (
        <Problem
          error={new Refusal(0, 'This page could not be loaded. Parley may have been updated meanwhile.')}
          retry={() => (tries === 0 ? setTries(1) : location.reload())}
        />
      ) : (
        <Loading />
      )}
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
        <Problem
          error={new Refusal(0, 'Something went wrong on this page. Reload it to go on.')}
          retry={() => location.reload()}
        />
      </div>
    )
  }
}
