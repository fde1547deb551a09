/** The menu beside every page. On a phone it opens over the page. */
import { effect, signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { go, NEW, place } from './address'
import { checkKey, forgetKey, key } from './api'
import { Recent } from './chat/recent'
import { isOver, useDrop } from './import/dropped'
import { PAGES } from './pages'
import { Button, Icon, Tool } from './parts/button'

const PHONE = '(max-width: 860px)'

export function Shell({ children }: { children: ComponentChildren }) {
  const main = useArrival()
  useDrop()
  useShortcut()
  const [open, setOpen] = useState(false)
  const [phone, setPhone] = useState(() => matchMedia(PHONE).matches)
  const toggle = useRef<HTMLButtonElement>(null)
  const { page, rest } = place.value
  const name = [page, ...rest].join('/')
  // biome-ignore lint/correctness/useExhaustiveDependencies: another key may be refused
  useEffect(() => {
    checkKey()
  }, [key.value])
  useEffect(() => {
    const media = matchMedia(PHONE)
    const changed = () => setPhone(media.matches)
    media.addEventListener('change', changed)
    return () => media.removeEventListener('change', changed)
  }, [])
  // biome-ignore lint/correctness/useExhaustiveDependencies: the menu closes when the address changes
  useEffect(() => setOpen(false), [name])
  const close = () => {
    setOpen(false)
    toggle.current?.focus()
  }
  const hidden = phone && !open
  return (
    <div class={open ? 'shell open' : 'shell'}>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the page
      </button>
      <header class="bar">
        <Tool
          icon={open ? 'close' : 'menu'}
          label={open ? 'Close the menu' : 'Open the menu'}
          ref={toggle}
          aria-expanded={open}
          aria-controls="menu"
          onClick={() => setOpen(!open)}
        />
        <Brand />
      </header>
      {open && phone && (
        <button type="button" class="veil" tabIndex={-1} aria-hidden="true" onClick={close} />
      )}
      <aside
        id="menu"
        class="side"
        aria-label="Menu"
        inert={hidden}
        onKeyDown={(event) => event.key === 'Escape' && open && close()}
      >
        <Brand />
        <Button label="New conversation" icon="plus" onClick={() => go(NEW)} />
        <nav class="menu" aria-label="Pages">
          <ul>
            {Object.entries(PAGES).map(
              ([of, { title, icon }]) =>
                icon && (
                  <li key={of}>
                    <a href={of === 'chat' ? NEW : `#/${of}`} aria-current={page === of ? 'page' : undefined}>
                      <Icon name={icon} />
                      {title}
                    </a>
                  </li>
                ),
            )}
          </ul>
        </nav>
        <Recent />
        <div class="side-foot">
          <a href="/docs/">
            <Icon name="book" />
            Documentation
          </a>
          <button type="button" onClick={nextTheme}>
            <Icon name="theme" />
            Theme: {theme.value}
          </button>
          <button type="button" onClick={forgetKey}>
            <Icon name="leave" />
            Switch key
          </button>
        </div>
      </aside>
      <main ref={main} class="main" tabIndex={-1} inert={phone && open}>
        {children}
      </main>
      {isOver.value && page !== 'import' && (
        <div class="drop-veil" aria-hidden="true">
          <p class="drop pile over">
            <Icon name="upload" />
            Drop a folder or files to import them
          </p>
        </div>
      )}
    </div>
  )
}

const Brand = () => (
  <a class="brand line" href={NEW}>
    <img src="/icon.svg" alt="" width="26" height="26" />
    Parley
  </a>
)

/** Puts the focus into the field for a question, but on a touch screen, where a keyboard would cover the page. */
function toQuestion(): void {
  if (matchMedia('(hover: hover)').matches)
    document.getElementById('question')?.focus({ preventScroll: true })
}

/** Ctrl+K, and Cmd+K on a Mac: a question can be asked from any page. */
function useShortcut(): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const { ctrlKey, metaKey, altKey, shiftKey } = event
      if (event.key.toLowerCase() !== 'k' || !(ctrlKey || metaKey) || altKey || shiftKey) return
      if (document.querySelector('dialog[open], [role=dialog]:not([hidden])')) return
      event.preventDefault()
      if (place.peek().page !== 'chat') go(NEW)
      requestAnimationFrame(toQuestion)
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [])
}

/** Moves the focus to what is shown when the address changes, so that a screen reader starts there. */
function useArrival(): { current: HTMLElement | null } {
  const main = useRef<HTMLElement>(null)
  const { page, rest } = place.value
  const name = [page, ...rest].join('/')
  const first = useRef(true)
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs for each address
  useEffect(() => {
    const isFirst = first.current
    first.current = false
    if (isFirst) return
    if (page === 'chat') return toQuestion()
    main.current?.scrollTo(0, 0)
    main.current?.querySelector<HTMLElement>('h1')?.focus({ preventScroll: true })
  }, [name])
  return main
}

const NAME = 'parley.theme'
const THEMES = ['system', 'light', 'dark'] as const

/** The colours of this browser's console: as the system has them, or as somebody has chosen. */
const theme = signal(THEMES.find((each) => each === localStorage.getItem(NAME)) ?? 'system')

effect(() => {
  document.documentElement.style.colorScheme = theme.value === 'system' ? '' : theme.value
})

function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.peek()) + 1) % THEMES.length]!
  localStorage.setItem(NAME, theme.peek())
}
