/** Runs before the page is first shown: light or dark as it was chosen here before. */
const chosen = localStorage.getItem('parley.theme') ?? 'auto'
const isDark = chosen === 'auto' ? matchMedia('(prefers-color-scheme: dark)').matches : chosen === 'dark'
document.documentElement.classList.toggle('dark', isDark)
document.documentElement.classList.toggle('mac', /Mac|iPhone|iPod|iPad/i.test(navigator.platform))

// VitePress reads any fragment, and fails for one that no page can have.
try {
  decodeURIComponent(location.hash)
} catch {
  history.replaceState(null, '', location.pathname + location.search)
}
