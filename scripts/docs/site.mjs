/** All pages of the documentation: those that are written, and those that are made of examples/ and of the API's description. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { GROUPS, labelOf, read, summaryOf, titleOf, written } from './pages.mjs'
import { referencePages } from './reference.mjs'

export const SUMMARY =
  'Conversational search at the edge: import documents, ask in plain language, read a grounded answer with its sources.'

/** @param {Group[]} groups @param {(group: Group) => string} [about] what is said of a group */
const listOf = (groups, about = () => '') =>
  groups
    .map((group) => {
      const lines = group.pages.map(({ name, label, summary }) => `- [${label}](/docs/${name}): ${summary}`)
      return `## ${group.title}\n\n${about(group)}${lines.join('\n')}\n`
    })
    .join('\n')

/** The first page as Markdown. @param {Group[]} groups */
export const home = (groups) => `---
title: Parley documentation
titleTemplate: false
---

# Ask your documents

${SUMMARY}

[Start in five minutes](/docs/tutorials/five-minutes), or [put it on your site](/docs/tutorials/on-your-site).

\`\`\`sh
npm ci
npm start
npm run parley -- import path/to/folder-or-https://your.site
npm run parley -- ask "How do I start?"
\`\`\`

${listOf(groups, ({ about }) => `${about}\n\n`).replaceAll('<', '&lt;')}`

/** `/docs/llms.txt`: titles, addresses and first sentences (https://llmstxt.org). @param {Group[]} groups */
export const listForPrograms = (groups) => `# Parley\n\n> ${SUMMARY}\n\n${listOf(groups)}`

const FOLDER = fileURLToPath(new URL('../../examples/', import.meta.url))

/** @param {string} file */
const languageOf = (file) => {
  const ending = /\.(\w+)$/.exec(file)?.[1] ?? ''
  return ending === 'mjs' ? 'js' : ending
}

/** The page, with the sources of all examples below it. */
function examplesPage() {
  const readme = readFileSync(`${FOLDER}README.md`, 'utf8')
  const files = readdirSync(FOLDER).filter((file) => file !== 'README.md')
  // Sources hold no fence of four backticks.
  const sources = files.map((file) => {
    const text = readFileSync(FOLDER + file, 'utf8')
    return `## ${file}\n\n\`\`\`\`${languageOf(file)}\n${text}\`\`\`\`\n`
  })
  return { name: 'examples', summary: summaryOf(readme), markdown: `${readme}\n${sources.join('\n')}` }
}

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
