/** Names that an import leaves out, in a folder, a bucket or an archive. */

/** Folders that hold no content of their own, wherever they are. */
const SKIPPED = new Set(['node_modules', '__pycache__', 'venv'])

/** What a site answers with where it has no page. */
const NO_PAGE = '404.html'

/** Hidden ones, folders of packages, and the page for what is not there. @param {string} name @param {boolean} isFolder */
export const isLeftOut = (name, isFolder) =>
  name.startsWith('.') || (isFolder ? SKIPPED.has(name) : name === NO_PAGE)
