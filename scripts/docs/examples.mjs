/** The page of examples: examples/README.md, and each file it links to. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { render } from './markdown.mjs'
import { summaryOf, titleOf } from './pages.mjs'

const FOLDER = fileURLToPath(new URL('../../examples/', import.meta.url))

/** @param {string} file */
const languageOf = (file) => {
  const ending = /\.(\w+)$/.exec(file)?.[1] ?? ''
  return ending === 'mjs' ? 'js' : ending
}

/** The page, with the sources of all examples below it. */
export function examplesPage() {
  const readme = readFileSync(`${FOLDER}README.md`, 'utf8')
  const files = readdirSync(FOLDER).filter((file) => file !== 'README.md')
  // Sources hold no fence of four backticks.
  const sources = files.map((file) => {
    const text = readFileSync(FOLDER + file, 'utf8')
    return `## ${file}\n\n\`\`\`\`${languageOf(file)}\n${text}\`\`\`\`\n`
  })
  const { html, headings } = render(`${readme}\n${sources.join('\n')}`, {
    link: (href) => {
      if (href.startsWith('../docs/')) return href.slice('..'.length).replace(/\.md(?=#|$)/, '')
      if (!files.includes(href)) throw new Error(`examples/README.md links to ${href}, which is not there.`)
      return `#${href.toLowerCase().replace(/[^a-z0-9_-]/g, '')}`
    },
    file: (href) => FOLDER + href,
  })
  return { name: 'examples', title: titleOf(readme), summary: summaryOf(readme), body: html, headings }
}
