/** Colours of code in answers. The script that knows them, and each grammar, are loaded when code needs them. */
import type { LanguageRegistration } from 'shiki/core'
import type { BlockOptions } from '../../../widget/src/blocks'
import type { Grammar } from '../../../widget/src/code'

const GRAMMARS: Record<Grammar, () => Promise<{ default: LanguageRegistration[] }>> = {
  bash: () => import('shiki/langs/bash.mjs'),
  c: () => import('shiki/langs/c.mjs'),
  csharp: () => import('shiki/langs/csharp.mjs'),
  css: () => import('shiki/langs/css.mjs'),
  diff: () => import('shiki/langs/diff.mjs'),
  docker: () => import('shiki/langs/docker.mjs'),
  go: () => import('shiki/langs/go.mjs'),
  ini: () => import('shiki/langs/ini.mjs'),
  java: () => import('shiki/langs/java.mjs'),
  json: () => import('shiki/langs/json.mjs'),
  kotlin: () => import('shiki/langs/kotlin.mjs'),
  powershell: () => import('shiki/langs/powershell.mjs'),
  python: () => import('shiki/langs/python.mjs'),
  rust: () => import('shiki/langs/rust.mjs'),
  sql: () => import('shiki/langs/sql.mjs'),
  toml: () => import('shiki/langs/toml.mjs'),
  tsx: () => import('shiki/langs/tsx.mjs'),
  xml: () => import('shiki/langs/xml.mjs'),
  yaml: () => import('shiki/langs/yaml.mjs'),
}

export const colour: NonNullable<BlockOptions['colour']> = async (text, grammar) => {
  const { piecesOf } = await import('../../../widget/src/code')
  return piecesOf(text, grammar, async (name) => (await GRAMMARS[name]()).default)
}
