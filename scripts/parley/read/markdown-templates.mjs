/** Templates of Hugo, Jekyll and others in Markdown, as Markdown: what they mark stays, and their marks go. */

/** Attributes of components whose words people read. */
export const WORDS =
  /^(?:title|label|heading|header|headline|summary|caption|question|description|text|alt|tooltip|packages?|commands?|code)$/i

/** @param {string} words */
export const strong = (words) => (words === '' ? '' : `**${words}**`)

/** Templates that Hugo and Jekyll (Liquid) fill in. @param {string} text */
export function withoutTemplates(text) {
  if (!/\{[{%:]|\[toc\]|^<<</im.test(text)) return text
  // Where a page is a template, so are its braces.
  const isLiquid = /\{%-?\s*(?:assign|for|if|unless|capture|include)\s/.test(text)
  return text
    .replace(/^[ \t]*(?:[-*+]|1\.)[ \t][^\n]*\n[ \t]*\{:[ \t]*toc[^}\n]*\}[ \t]*$/gim, '')
    .replace(/^<<<[ \t]*[@./~][^\n]*$/gm, '')
    .replace(/\{%-?\s*capture\b[^%]{0,200}%\}[\s\S]{0,16384}?\{%-?\s*endcapture\s*-?%\}/g, '')
    .replace(
      /\{%-?\s*comment\s*-?%\}[\s\S]{0,16384}?\{%-?\s*endcomment\s*-?%\}|\{\{\s*\/\*[\s\S]{0,16384}?\*\/\s*\}\}/g,
      '',
    )
    .replace(
      /\{(?:\{<|\{%|%)-?\s*highlight\s+([\w+#.-]+)[^\n]{0,200}?(?:>\}|%\}|%)\}[ \t]*\n?([\s\S]{0,16384}?)\n?\{(?:\{<|\{%|%)-?\s*(?:end|\/\s*)highlight\s*-?(?:>\}|%\}|%)\}/g,
      (_, language, code) => `\`\`\`${language}\n${code}\n\`\`\``,
    )
    .replace(
      /\{\{[<%]\s*(\/?)\s*([\w-]+)([^\n]{0,500}?)\s*\/?[>%]\}\}|\{%-?\s*()([\w-]+)([^\n]{0,500}?)-?%\}/g,
      (_, end, hugo, its, __, liquid, more) => {
        const [name, attributes = ''] = [hugo ?? liquid, its ?? more]
        if (end) return ''
        const said = [...attributes.matchAll(/(?:([\w-]+)\s*=\s*)?"([^"]*)"|(?:([\w-]+)\s*=\s*)?'([^']*)'/g)]
        const first = said[0]?.[2] ?? said[0]?.[4] ?? ''
        if (/^(?:ref|relref)$/.test(name)) return first
        if (/^(?:link|post_url)$/.test(name)) return attributes.trim()
        const isNamed =
          /tab|detail|expand|collapse|callout|note|alert|hint|accordion|spoiler|panel|card|button|step/i.test(
            name,
          )
        return said
          .filter(
            ([, key, , other]) =>
              WORDS.test(key ?? other ?? '') ||
              (name === 'include' && /^(?:content|message|body)$/.test(key ?? other ?? '')) ||
              (key ?? other) === (isNamed ? 'name' : '') ||
              ((key ?? other) === undefined && isNamed),
          )
          .map(([, , words, others]) => `${strong(words ?? others ?? '')} `)
          .join('')
      },
    )
    .replace(
      isLiquid ? /\{\{-?\s*[a-z][^{}\n]*\}\}/gi : /\{\{-?\s*(?:site|page|include|layout)\.[^{}\n]*\}\}/g,
      '',
    )
    .replace(/^[ \t]*\{:[^}\n]*\}[ \t]*\n?|\{:\s*[.#][^}\n]*\}/gm, '')
    .replace(/^\[\[?_?toc_?\]\]?[ \t]*$/gim, '')
}
