/** The keys that this page searches, asks and sends with. */
import { storedKey } from '../../key.js'

const builtIn = () => document.querySelector('meta[name="parley-key"]')?.getAttribute('content') ?? ''

/** To ask with: a key that the site was built with, or the one that the console keeps in this browser. '': none */
export const pageKey = () => builtIn() || storedKey()

/** To send commands with: the reader's own, which may do more than the one that the site was built with. '': none */
export const readersKey = () => storedKey() || builtIn()
