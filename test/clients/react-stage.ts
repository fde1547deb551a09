/** Hooks of React without a browser: a component that shows nothing, on a document that nobody sees. */
import { parseHTML } from 'linkedom'
import { type ComponentType, createElement, Suspense } from 'react'

export interface Staged<T> {
  /** what the hook returned last; undefined before it returned for the first time */
  current(): T | undefined
  leave(): void
}

/** Runs a hook until `leave`. */
export async function stageHook<T>(useHook: () => T): Promise<Staged<T>> {
  const { document } = parseHTML('<!doctype html><html><body><main></main></body></html>')
  // React asks a window for the current event. Anything more would make other clients take this for a browser.
  const given = globalThis as { window?: unknown }
  given.window ??= { event: undefined }
  const { createRoot } = await import('react-dom/client')
  let latest: T | undefined
  // biome-ignore lint/correctness/noComponentHookFactories: each stage has a component of its own, once
  const Hook: ComponentType = () => {
    latest = useHook()
    return null
  }
  const root = createRoot(document.querySelector('main') as unknown as Element)
  root.render(createElement(Suspense, { fallback: null }, createElement(Hook)))
  return { current: () => latest, leave: () => root.unmount() }
}
