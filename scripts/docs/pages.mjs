/** The pages of the documentation in the order in which they are read, and where each is. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const FOLDER = fileURLToPath(new URL('../../docs/', import.meta.url))

/**
 * The groups of the navigation. Each name is a file of docs/ without its ending, and the page's address below /docs/.
 * @type {{ title: string, about: string, names: string[] }[]}
 */
export const GROUPS = [
  {
    title: 'Tutorials',
    about: 'Short walks from nothing to something that works. Every command is run by a test.',
    names: [
      'tutorials/five-minutes',
      'tutorials/on-your-site',
      'tutorials/from-typesense',
      'tutorials/from-opensearch',
      'tutorials/deploying',
      'tutorials/tuning',
    ],
  },
  {
    title: 'Guides',
    about: 'One task each, and how the parts are used.',
    names: [
      'getting-started',
      'guides/markdown',
      'guides/website',
      'guides/csv',
      'command-line',
      'formats',
      'engines',
      'console',
      'widget',
      'widget-comparison',
      'assistants',
      'keys',
      'analytics',
      'webhooks',
      'models',
      'deploy',
      'staging',
      'regions',
      'free-plan',
      'first-account',
      'operating',
      'backup',
    ],
  },
  {
    title: 'Reference',
    about: 'What each part does, to the letter.',
    names: [
      'conversations',
      'search',
      'chat-protocols',
      'clients',
      'typesense',
      'opensearch',
      'limits',
      'security',
      'architecture',
      'one-question',
      'costs',
      'benchmarks',
    ],
  },
  {
    title: 'Decisions',
    about: 'Why it is as it is, and what was rejected.',
    names: readdirSync(`${FOLDER}decisions`)
      .map((file) => `decisions/${file.replace(/\.md$/, '')}`)
      .sort(),
  },
]

/** Names in the navigation, where a page's own title is long. @type {Record<string, string>} */
const SHORT = {
  'tutorials/five-minutes': 'Five minutes',
  'tutorials/on-your-site': 'Put it on your site',
  'tutorials/from-typesense': 'Move from Typesense',
  'tutorials/from-opensearch': 'Move from OpenSearch',
  'tutorials/deploying': 'Deploy',
  'tutorials/tuning': 'Tune the answers',
  'guides/markdown': 'Ask your Markdown',
  'guides/website': 'Ask your website',
  'guides/csv': 'Ask a CSV',
  deploy: 'Deploying in detail',
  staging: 'Staging',
  'first-account': 'First account',
  models: 'Models',
}

/** @param {string} name of a page @returns {string} its Markdown */
export const read = (name) => readFileSync(`${FOLDER}${name}.md`, 'utf8')

/** @param {string} markdown */
export const titleOf = (markdown) => /^# (.+)$/m.exec(markdown)?.[1]?.replaceAll('`', '') ?? ''

/** The page's name in the navigation. @param {string} name */
export const labelOf = (name) => SHORT[name] ?? titleOf(read(name))

/** The names of all Markdown files of docs/, whether the navigation has them or not. */
export const written = () =>
  readdirSync(FOLDER, { recursive: true })
    .map((path) => String(path).replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.md'))
    .map((path) => path.slice(0, -'.md'.length))
    .sort()

/** The first paragraph of a page as plain text, cut to what search engines show. @param {string} markdown */
export function summaryOf(markdown) {
  const paragraphs = markdown.split(/\n{2,}/).filter((part) => /^[\p{L}`*["]/u.test(part))
  const text = (paragraphs[0] ?? '')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[`*]/g, '')
    .replace(/\s+/g, ' ')
    .trim()
  if (text.length <= 160) return text
  return `${text.slice(0, 157).replace(/\s+\S*$/, '')} …`
}
