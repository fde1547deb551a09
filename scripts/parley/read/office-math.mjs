/** Formulas of office files (ECMA-376, part 1, 22.1, "Math") as TeX. */

/** @param {Element} element @param {string} name */
const part = (element, name) => Array.from(element.children).find((each) => each.nodeName === `m:${name}`)

/** @param {Element | undefined} element @param {string} name of a property @param {string} fallback */
const property = (element, name, fallback) =>
  (element && part(element, name))?.getAttribute('m:val') ?? fallback

/** Raised and lowered as one. @param {string} tex */
const group = (tex) => (tex.length > 1 ? `{${tex}}` : tex)

/**
 * @param {Element} element a formula, or a part of one
 * @returns {string} without dollar signs; '' for nothing
 */
export function texOf(element) {
  const of = (/** @type {string} */ name) => {
    const inner = part(element, name)
    return inner ? texOf(inner) : ''
  }
  const kind = element.nodeName.replace(/^m:/, '')
  const settings = part(element, `${kind}Pr`)
  switch (kind) {
    case 't':
      return element.textContent ?? ''
    case 'f':
      return `\\frac{${of('num')}}{${of('den')}}`
    case 'sSup':
      return `${of('e')}^${group(of('sup'))}`
    case 'sSub':
      return `${of('e')}_${group(of('sub'))}`
    case 'sSubSup':
      return `${of('e')}_${group(of('sub'))}^${group(of('sup'))}`
    case 'rad':
      return of('deg') === '' ? `\\sqrt{${of('e')}}` : `\\sqrt[${of('deg')}]{${of('e')}}`
    case 'nary': {
      const limits = [of('sub') && `_${group(of('sub'))}`, of('sup') && `^${group(of('sup'))}`]
      return `${property(settings, 'chr', '∫')}${limits.join('')} ${of('e')}`
    }
    case 'd': {
      const parts = Array.from(element.children).filter((each) => each.nodeName === 'm:e')
      return `${property(settings, 'begChr', '(')}${parts.map(texOf).join(property(settings, 'sepChr', '|'))}${property(settings, 'endChr', ')')}`
    }
    default:
      if (kind.endsWith('Pr')) return ''
      return Array.from(element.children)
        .map(texOf)
        .join(kind === 'mr' ? ' & ' : kind === 'm' ? ' \\\\ ' : '')
  }
}
