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

/**
 * @typedef {{ number: number, cited: boolean, id: string, title: string, place: string, excerpt: string,
 *   text: string, link: string | undefined }} Source
 * @typedef {{ collection: string, document_id: string, start: number, end: number, quote?: string }} Citation
 */

/** @param {unknown} value @returns {value is string} */
const isText = (value) => typeof value === 'string' && value.trim() !== ''

/**
 * A link that leads to a web page, or to one of this server; anything else a document might hold is not followed.
 * @param {unknown} url
 */
const webLink = (url) => (isText(url) && /^(https?:\/\/|\/(?!\/))/.test(url) ? url : undefined)

/** @param {string} text @param {number} length */
const shorten = (text, length) => (text.length <= length ? text : `${text.slice(0, length).trimEnd()}…`)

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

/**
 * The sources of an answer: those it cites, in the order in which it does, then the rest of what was found.
 * @param {Record<string, unknown>[]} documents
 * @param {Citation[]} citations
 * @returns {Source[]}
 */
export function sourcesOf(documents, citations) {
  const order = citations.map((citation) => citation.document_id)
  const rank = (/** @type {unknown} */ id) =>
    order.includes(String(id)) ? order.indexOf(String(id)) : order.length
  const sorted = [...documents].sort((a, b) => rank(a.id) - rank(b.id))
  return sorted.map((document, index) => {
    const id = String(document.id)
    const cited = citations.filter((citation) => citation.document_id === id)
    const { title, place, body } = titlesOf(document)
    const quote = cited.find((citation) => citation.quote)?.quote
    return {
      number: index + 1,
      cited: cited.length > 0,
      id,
      title,
      place,
      excerpt: shorten(quote ?? body, 240),
      text: body,
      link: webLink(document.url),
    }
  })
}

/**
 * An answer with a numbered button behind each part that a source supports.
 * @param {string} answer
 * @param {Citation[]} citations
 * @param {Source[]} sources
 * @param {(source: Source) => void} onCite
 * @returns {(Node | string)[]}
 */
export function citedAnswer(answer, citations, sources, onCite) {
  const nodes = []
  let from = 0
  for (const { document_id, start, end } of [...citations].sort(
    (a, b) => a.end - b.end || a.start - b.start,
  )) {
    const source = sources.find(({ id }) => id === document_id)
    if (source === undefined || end > answer.length) continue
    // Two sources for the same words: a second button, no second mark.
    if (start >= from) {
      nodes.push(...inline(answer.slice(from, start)))
      const words = inline(answer.slice(start, end))
      nodes.push(element('span', { class: 'cited', 'data-source': String(source.number) }, ...words))
      from = end
    } else if (end > from) {
      nodes.push(...inline(answer.slice(from, end)))
      from = end
    }
    const label = `Source ${source.number}: ${source.title}`
    const button = element(
      'button',
      { type: 'button', class: 'cite', 'aria-label': label, title: label },
      String(source.number),
    )
    button.addEventListener('click', () => onCite(source))
    nodes.push(button)
  }
  return [...nodes, ...inline(answer.slice(from))]
}

/**
 * A source as a card: what it says in short, its whole text on demand.
 * @param {Source} source
 * @param {string} prefix makes the element's id unique on the page
 */
export function sourceCard(source, prefix) {
  const heading = element('p', { class: 'source-title' })
  heading.append(element('span', { class: 'number', 'aria-hidden': 'true' }, String(source.number)))
  if (source.link === undefined) heading.append(source.title)
  else
    heading.append(
      element('a', { href: source.link, rel: 'noopener noreferrer', target: '_blank' }, source.title),
    )

  const card = element('li', {
    class: source.cited ? 'source used' : 'source',
    id: `${prefix}-${source.number}`,
  })
  card.setAttribute('tabindex', '-1')
  card.append(heading)
  if (source.place) card.append(element('p', { class: 'place' }, source.place))
  card.append(element('p', { class: 'excerpt' }, ...inline(source.excerpt)))
  if (source.text.length > source.excerpt.length) {
    const whole = element('details', {}, element('summary', {}, 'Whole text'))
    whole.append(element('p', { class: 'whole' }, ...inline(source.text)))
    card.append(whole)
  }
  return card
}
