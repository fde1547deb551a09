/** What a page unfolds, such as the panels of tabs and the answers to questions, behind the words that unfold it. */

/** Tabs, and what each of them shows, as generators write them. Those that write each panel behind its label need nothing. */
const TABS = [
  ['[role="tablist"]', '[role="tab"]', '[role="tabpanel"], .tab-pane, .tabcontent'],
  ['.tabbed-labels', 'label', '.tabbed-block'],
  ['.vp-code-group > .tabs', 'label', '.blocks > div'],
  ['.nav-tabs, .nav-pills, .tablist, ul.tabs', 'li', '.tab-pane, .tabpanel, .tabs-panel, .tab-content > div'],
  ['.tab, .tabs', '.tablinks', '.tabcontent'],
]
export const PANELS =
  '[role="tabpanel"], .tab-pane, .tabcontent, .tabpanel, .tabs-panel, .tab-content > div, .tabbed-block, details'
/** What a reader presses to see something. */
const CONTROLS =
  'button, summary, [role="tab"], [aria-controls], [data-target], [data-bs-target], [data-tab], a[href^="#"]'

/** Words of attributes that name nothing. */
const KINDS = /^(?:true|false|tab|tabs|pill|collapse|modal|dropdown|toggle|panel|open|closed|hidden|on|off)$/

/** What an element names, or is named by: its own id, and in attributes those of others. @param {Element} element @param {string[]} names */
const namesIn = (element, names) =>
  [...element.attributes]
    .filter(({ name }) => names.includes(name) || name.startsWith('data-'))
    .flatMap(({ value }) => value.replace(/^[#.]/, '').split(/\s+/))
    .filter((name) => name !== '' && !KINDS.test(name))

/**
 * Tells what a page unfolds: what a control names, and what stands behind one.
 * @param {Document} document
 * @returns {(element: Element) => boolean}
 */
export function shownIn(document) {
  const shown = new Set(
    [...document.querySelectorAll(CONTROLS)].flatMap((each) => namesIn(each, ['aria-controls', 'href'])),
  )
  return (element) => {
    const before = element.previousElementSibling
    return (
      namesIn(element, ['id']).some((name) => shown.has(name)) ||
      Boolean(before?.matches('[aria-expanded]') || before?.querySelector('[aria-expanded]'))
    )
  }
}

/**
 * Puts the label of each tab before what it shows.
 * @param {Document} document
 */
export function labelPanels(document) {
  for (const [lists = '', labels = '', shows = ''] of TABS) {
    /** The panels in each element around a list: many lists have the same ones around. @type {Map<Element, Element[]>} */
    const panelsIn = new Map()
    for (const list of document.querySelectorAll(lists)) {
      const tabs = [...list.querySelectorAll(labels)]
      /** @type {Element[]} */
      let panels = []
      for (
        let around = list.parentElement;
        around && panels.length < tabs.length;
        around = around.parentElement
      ) {
        panels = panelsIn.get(around) ?? outermost([...around.querySelectorAll(shows)])
        panelsIn.set(around, panels)
      }
      if (tabs.length === 0 || panels.length === 0) continue
      for (const [at, tab] of tabs.entries()) {
        const link = tab.querySelector('[aria-controls], [href^="#"], [data-bs-target]') ?? tab
        const id = ['aria-controls', 'href', 'data-bs-target', 'data-target']
          .map((name) => link.getAttribute(name)?.replace('#', ''))
          .find((name) => name)
        const panel = panels.find((each) => id !== undefined && each.getAttribute('id') === id) ?? panels[at]
        if (panel) label(panel, tab)
      }
      list.remove()
    }
  }
  labelNamed(document)
  for (const button of document.querySelectorAll(
    'button[aria-expanded], button[aria-controls], button[data-bs-target], button[data-target]',
  ))
    if (!button.matches('[aria-haspopup]') && !button.closest('nav, pre')) unfold(button)
}

/** @param {Element} panel @param {Element} tab */
function label(panel, tab) {
  const words = panel.ownerDocument.createElement('p')
  words.append(strong(panel.ownerDocument, clean(tab.textContent)))
  panel.prepend(words)
}

/**
 * Tabs without a mark of any library: buttons or links side by side, each of which names one of several parts side by side.
 * @param {Document} document
 */
function labelNamed(document) {
  /** @type {Map<string, Element>} */
  const places = new Map()
  for (const each of document.querySelectorAll('div, section, pre'))
    for (const name of namesIn(each, ['id'])) if (!places.has(name)) places.set(name, each)
  /** @type {Map<Element, Element[]>} */
  const groups = new Map()
  for (const each of document.querySelectorAll('button, li > a[href^="#"]')) {
    const group = each.nodeName === 'A' ? each.parentElement?.parentElement : each.parentElement
    if (!group) continue
    const tabs = groups.get(group) ?? []
    tabs.push(each)
    groups.set(group, tabs)
  }
  for (const [group, tabs] of groups) {
    const panels = tabs.flatMap((tab) => {
      const panel = namesIn(tab, ['aria-controls', 'href'])
        .map((name) => places.get(name))
        .find((each) => each)
      const isAlone =
        tab.nodeName !== 'A' || clean(tab.parentElement?.textContent ?? '') === clean(tab.textContent)
      return panel &&
        isAlone &&
        !/^H\d$/.test(panel.firstElementChild?.nodeName ?? '') &&
        !panel.contains(tab)
        ? [panel]
        : []
    })
    const isTabs =
      tabs.length > 1 &&
      new Set(panels).size === tabs.length &&
      panels.every((each) => each.parentElement === panels[0]?.parentElement)
    if (!isTabs) continue
    for (const [at, tab] of tabs.entries()) {
      const panel = panels[at]
      if (panel) label(panel, tab)
      tab.remove()
    }
    if (clean(group.textContent) === '') group.remove()
  }
}

/** A button that unfolds something says what that is. @param {Element} button */
function unfold(button) {
  const words = clean(button.textContent)
  if (words === '') return
  if (button.closest('h1, h2, h3, h4, h5, h6, summary, dt')) button.replaceWith(...button.childNodes)
  else {
    const heading = button.ownerDocument.createElement(QUESTION.test(words) ? 'h4' : 'p')
    heading.append(words)
    button.replaceWith(heading)
  }
}

export const QUESTION = /[?\uff1f\u061f]\s*$/

/** Elements, in the order of the page, that are in no other of them. @param {Element[]} elements */
function outermost(elements) {
  /** @type {Element[]} */
  const outer = []
  for (const each of elements) if (!outer.at(-1)?.contains(each)) outer.push(each)
  return outer
}

/**
 * @param {Document} document
 * @param {string} text
 */
export function strong(document, text) {
  const element = document.createElement('strong')
  element.append(text)
  return element
}

/** @param {string | null} text */
export const clean = (text) => (text ?? '').replace(/\s+/g, ' ').trim()
