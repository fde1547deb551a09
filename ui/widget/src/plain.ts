/** Markdown as a sentence to read: pure. */

/** Markdown without its marks, on one line. What looks like no mark stays as it is, and so does what is code. */
export const plain = (text: string): string =>
  text
    .replace(/<!--.*?-->|<\/?(?:script|style)[^>]*>/gs, ' ')
    .replace(/!?\[([^\]\n]*)\]\([^)\n]*\)/g, '$1')
    .replace(/^\s{0,3}(?:#{1,6}\s+|>\s?|```.*$|:::.*$|\|[\s:|-]+$)/gm, '')
    .replace(/^\s*\|(.*)\|\s*$/gm, (_, cells: string) => cells.replace(/\s*\|\s*/g, ' · '))
    .replace(
      /```\w*|`([^`\n]+)`|(?<![\w*])\*([^\s*](?:[^*\n]*[^\s*])?)\*(?![\w*])|(?:\*\*|__|`)(?=\S)|(?<=\S)(?:\*\*|__|`)/g,
      (_, code?: string, leaning?: string) => code ?? leaning ?? '',
    )
    .replace(/\s+/g, ' ')
    .trim()
