/** The first page of the documentation, and the list of it for programs. */
import { address } from './layout.mjs'
import { codeBlock, escaped } from './markdown.mjs'

/** @typedef {import('./layout.mjs').Group} Group */

const SUMMARY =
  'Conversational search at the edge: import documents, ask in plain language, read a grounded answer with its sources.'

/** @param {Group[]} groups */
function body(groups) {
  const sections = groups.map(({ title, about, entries }) => {
    const cards = entries.map(
      ({ name, label, summary }) =>
        `<li><a href="${address(name)}"><strong>${escaped(label)}</strong><span>${escaped(summary ?? '')}</span></a></li>`,
    )
    return `<section><h2>${escaped(title)}</h2><p>${escaped(about)}</p><ul class="cards">${cards.join('')}</ul></section>`
  })
  return `<div class="hero">
<h1>Ask your documents</h1>
<p>${escaped(SUMMARY)}</p>
<p class="actions"><a class="button primary" href="/docs/tutorials/five-minutes">Start in five minutes</a><a class="button" href="/docs/tutorials/on-your-site">Put it on your site</a></p>
</div>
${codeBlock('npm ci\nnpm start\nnpm run parley -- import path/to/folder-or-https://your.site\nnpm run parley -- ask "How do I start?"', 'sh')}
${sections.join('\n')}`
}

/** @param {Group[]} groups */
export const home = (groups) => ({ title: 'Parley documentation', summary: SUMMARY, body: body(groups) })

/** `/docs/llms.txt`: titles, addresses and first sentences (https://llmstxt.org). @param {Group[]} groups */
export function listForPrograms(groups) {
  const parts = groups.map(({ title, entries }) => {
    const lines = entries.map(({ name, label, summary }) => `- [${label}](${address(name)}): ${summary}`)
    return `## ${title}\n\n${lines.join('\n')}\n`
  })
  return `# Parley\n\n> ${SUMMARY}\n\n${parts.join('\n')}`
}
