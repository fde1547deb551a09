/** From answers and documents to elements. Data only ever becomes text: nothing here parses HTML. */

/**
 * @param {string} name
 * @param {Record<string, string>} [attributes]
 * @param {(Node | string)[]} children
 */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  made.append(...children)
  return made
}

/**
 * Text with its blocks of code, its `code` and its **strong** parts.
 * @param {string} text
 * @returns {(Node | string)[]}
 */
export function inline(text) {
  const nodes = []
  let from = 0
  for (const match of text.matchAll(/\n*```[^\n]*\n([\s\S]*?)\n?```\n*|`([^`\n]+)`|\*\*([^*\n]+)\*\*/g)) {
    const [whole, block, code, strong] = match
    nodes.push(text.slice(from, match.index))
    if (block !== undefined) nodes.push(element('pre', {}, element('code', {}, block)))
    else nodes.push(code === undefined ? element('strong', {}, strong ?? '') : element('code', {}, code))
    from = match.index + whole.length
  }
  return [...nodes, text.slice(from)]
}

/** @param {unknown} value @returns {value is string} */
const isText = (value) => typeof value === 'string' && value.trim() !== ''

/**
 * What a document is called, where in a larger one it stands, and what it says.
 * @param {Record<string, unknown>} document
 */
export function titlesOf(document) {
  const texts = Object.entries(document).filter(([name, value]) => isText(value) && !/^(id|url)$/.test(name))
  const [body = ''] = texts.map(([, value]) => String(value)).sort((a, b) => b.length - a.length)
  const title = [document.title, document.name, document.heading].find(isText) ?? String(document.id)
  const place = [document.heading, document.section].find((value) => isText(value) && value !== title)
  return { title, place: isText(place) ? place : '', body }
}
