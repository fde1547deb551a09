/** The first page of the documentation, and the list of it for programs. */

/** @typedef {import('./site.mjs').Group} Group */

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
