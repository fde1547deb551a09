/** Which files of a folder are imported, wherever the folder is: on this machine, or dropped on a page. */
import ignore from 'ignore'
import { isReadable, isUnreadText } from '../read/index.mjs'
import { isLeftOut } from './left-out.mjs'

/**
 * @template File
 * @typedef {{ name: string, folder?: Folder<File>, file?: File }} Entry
 */

/**
 * @template File
 * @typedef {{ entries(): Promise<Entry<File>[]>, text(file: File): Promise<string> }} Folder
 */

/**
 * The readable files of a folder and below it, in order. Left out are hidden files, node_modules, 404.html, and what a
 * .gitignore names.
 * @template File
 * @param {Folder<File>} root
 * @returns {Promise<{ files: { name: string, file: File }[], unreadable: string[] }>} by their paths within the folder, with `/`;
 *   unreadable: documents of kinds that are not read
 */
export async function filesOf(root) {
  /** @type {{ name: string, file: File }[]} */
  const found = []
  /** @type {string[]} */
  const unreadable = []
  /** @param {Folder<File>} folder @param {string} prefix @param {((path: string) => boolean)[]} ignored */
  const walk = async (folder, prefix, ignored) => {
    const entries = (await folder.entries()).sort((a, b) => (a.name < b.name ? -1 : 1))
    const list = entries.find(({ name }) => name === '.gitignore')?.file
    const own = list === undefined ? '' : await folder.text(list)
    const rules = own === '' ? undefined : ignore().add(own)
    const checks = rules
      ? [...ignored, (/** @type {string} */ path) => rules.ignores(path.slice(prefix.length))]
      : ignored
    for (const { name, folder: below, file } of entries) {
      const path = prefix + name
      if (isLeftOut(name, below !== undefined) || checks.some((isIgnored) => isIgnored(path))) continue
      if (below) await walk(below, `${path}/`, checks)
      else if (file !== undefined && isReadable(name)) found.push({ name: path, file })
      else if (file !== undefined && isUnreadText(name)) unreadable.push(path)
    }
  }
  await walk(root, '', [])
  return { files: found, unreadable }
}
