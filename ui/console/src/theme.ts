/** The colours of this browser's console: as the system has them, or as somebody has chosen. */
import { effect, signal } from '@preact/signals'

const NAME = 'parley.theme'
const THEMES = ['system', 'light', 'dark'] as const
type Theme = (typeof THEMES)[number]

function stored(): Theme {
  try {
    return THEMES.find((theme) => theme === localStorage.getItem(NAME)) ?? 'system'
  } catch {
    return 'system'
  }
}

export const theme = signal<Theme>(stored())

effect(() => {
  document.documentElement.style.colorScheme = theme.value === 'system' ? '' : theme.value
})

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.peek()) + 1) % THEMES.length]!
  try {
    localStorage.setItem(NAME, theme.peek())
  } catch {
    // Kept for as long as the page is open.
  }
}
