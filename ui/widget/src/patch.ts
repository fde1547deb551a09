/** Elements that become others without being made anew: what is selected in them stays selected. */

/** What readers change, and not the text. */
const THEIRS = new Set(['aria-expanded'])

/** Makes the children of one node those of another, which is used up. What is alike stays the same nodes. */
export function patch(node: Node, wanted: Node): void {
  const before = [...node.childNodes]
  const after = [...wanted.childNodes]
  for (const [index, next] of after.entries()) {
    const old = before[index]
    if (!old) node.appendChild(next)
    else if (old instanceof Text && next instanceof Text) {
      // What is added to a text moves no selection; another text would.
      if (next.data.startsWith(old.data)) old.appendData(next.data.slice(old.data.length))
      else old.data = next.data
    } else if (old instanceof Element && next instanceof Element && isAlike(old, next)) patch(old, next)
    else old.replaceWith(next)
  }
  for (const old of before.slice(after.length)) old.remove()
}

const isAlike = (one: Element, other: Element): boolean =>
  one.tagName === other.tagName && attributesOf(one) === attributesOf(other)

const attributesOf = (element: Element): string =>
  [...element.attributes]
    .filter(({ name }) => !THEIRS.has(name))
    .map(({ name, value }) => `${name}=${value}`)
    .sort()
    .join('\n')
