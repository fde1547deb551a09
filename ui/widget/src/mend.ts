/** Markdown that is being written: pure. */

/**
 * The end of a text that is being written, with what it has opened closed, so that no asterisk or half a link is seen
 * before it becomes what it is.
 */
export function mend(text: string): string {
  const fences = text.match(/^ {0,3}(```|~~~)/gm)?.length ?? 0
  if (fences % 2 === 1) return text
  const from = text.lastIndexOf('\n\n') + 1
  let end = text
    .slice(from)
    // A lone marker that may become a list, a heading or a rule.
    .replace(/(^|\n)[ \t]*(?:[-*+_=]{1,3}|#{1,6}|>|\d{1,3}[.)]?)[ \t]*$/, '$1')
    // The head of a table until its second line is there.
    .replace(/(^|\n)[ \t]*\|[^\n]*(?:\n[ \t]*\|?[ :|-]*)?$/, (line, start, offset, whole) =>
      /\n[ \t]*\|?[ \t]*:?-+:?[ \t]*\|[^\n]*\n/.test(whole.slice(0, offset + 1) + line) ? line : start,
    )
    .replace(/!?\[([^\]\n]*)\]\([^)\n]*$/, '$1')
    .replace(/!?\[([^\]\n]*)$/, '$1')
  if ((end.match(/`/g)?.length ?? 0) % 2 === 1) end = end.endsWith('`') ? end.slice(0, -1) : `${end}\``
  else {
    end = end.replace(/\*{1,2}$/, (run) => ((end.split(run).length - 1) % 2 === 1 ? '' : run))
    if ((end.match(/\*\*/g)?.length ?? 0) % 2 === 1) end = `${end.trimEnd()}**`
  }
  return text.slice(0, from) + end
}
