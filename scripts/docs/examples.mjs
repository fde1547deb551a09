/** The page of examples: examples/README.md, and each file it links to. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { summaryOf } from './pages.mjs'

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
  return { name: 'examples', summary: summaryOf(readme), markdown: `${readme}\n${sources.join('\n')}` }
}
