/** Has the commands of a page name the server that shows it, and the reader's own key. */
import { storedKey } from '../../key.js'

const WRITTEN = 'http://localhost:8108'
const WRITTEN_KEY = /((?:x-typesense-api-key: |Bearer ))xyz\b/gi

export function nameServer() {
  const key = storedKey()
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    if (!text.parentElement?.closest('.vp-doc code')) continue
    const written = text.nodeValue ?? ''
    const named = written.replaceAll(WRITTEN, location.origin)
    const own = key === '' ? named : named.replace(WRITTEN_KEY, (_, before) => before + key)
    if (own !== written) text.nodeValue = own
  }
}
