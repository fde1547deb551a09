/** The key that this page searches and asks with. */
import { storedKey } from '../../key.js'

/** A key that the site was built with, or the one that the console keeps in this browser. '': none */
export const pageKey = () => {
  const meta = document.querySelector('meta[name="parley-key"]')
  return meta?.getAttribute('content') || storedKey()
}
