/** What each page of the documentation does besides being read. */
import { mountAsk } from './ask.js'
import { mountContents } from './contents.js'
import { mountSearch } from './search.js'
import { mountTry } from './try.js'

for (const button of document.querySelectorAll('[data-copy]')) {
  button.addEventListener('click', async () => {
    const code = button.closest('.code')?.querySelector('code')?.textContent ?? ''
    await navigator.clipboard.writeText(code)
    button.textContent = 'Copied'
    setTimeout(() => {
      button.textContent = 'Copy'
    }, 2000)
  })
}

document.querySelector('[data-theme-toggle]')?.addEventListener('click', () => {
  const root = document.documentElement
  const isDark = root.dataset.theme
    ? root.dataset.theme === 'dark'
    : matchMedia('(prefers-color-scheme: dark)').matches
  root.dataset.theme = isDark ? 'light' : 'dark'
  localStorage.setItem('parley.theme', root.dataset.theme)
})

// The page that is open, in sight in the navigation.
document.querySelector('.side [aria-current]')?.scrollIntoView({ block: 'nearest' })

mountSearch()
mountAsk()
mountContents()
mountTry()
