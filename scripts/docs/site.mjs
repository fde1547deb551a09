/** All pages of the documentation: those that are written, and those that are made of examples/ and of the API's description. */
import { examplesPage } from './examples.mjs'
import { GROUPS, labelOf, read, summaryOf, titleOf, written } from './pages.mjs'
import { referencePages } from './reference.mjs'

/**
 * `name` is the page's address below /docs/, `label` its name in the navigation, and `isWritten` says whether docs/ has it as it is.
 * @typedef {{ name: string, label: string, summary: string, markdown: string, isWritten?: boolean }} Page
 * @typedef {{ title: string, about: string, pages: Page[] }} Group
 */

const listed = GROUPS.flatMap(({ names }) => names)
const homeless = written().filter((name) => !listed.includes(name))
if (homeless.length > 0) throw new Error(`scripts/docs/pages.mjs has no place for ${homeless.join(', ')}.`)

/** @param {string} name of a file of docs/ @returns {Page} */
function pageOf(name) {
  const markdown = read(name)
  return { name, label: labelOf(name), summary: summaryOf(markdown), markdown, isWritten: true }
}

/** @param {{ name: string, markdown: string, summary: string }} page @returns {Page} */
const labelled = (page) => ({ ...page, label: titleOf(page.markdown) })

/** The groups of the navigation, in their order. @type {Group[]} */
export const groups = [
  ...GROUPS.map(({ title, about, names }) => ({ title, about, pages: names.map(pageOf) })),
  {
    title: 'API',
    about: 'Every route of every protocol, to try here.',
    pages: referencePages().map(labelled),
  },
]
groups[1]?.pages.push(labelled(examplesPage()))
