/** The parsers of front matter. A Worker goes without their 35 KB (markdown.mjs). */
import { parse as parseToml } from 'smol-toml'
import { parse as parseYaml } from 'yaml'

/** @type {import('./markdown.mjs').Parsers} */
export const parsers = {
  yaml: (text) => parseYaml(text, { logLevel: 'error' }),
  toml: parseToml,
}
