/** Marks in "On this page" the section that is being read. */
export function mountContents() {
  /** @type {Map<string, HTMLAnchorElement>} */
  const links = new Map()
  for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll('.contents a')))
    links.set(decodeURIComponent(link.hash.slice(1)), link)
  if (links.size === 0) return
  const headings = [...links.keys()].flatMap((id) => document.getElementById(id) ?? [])
  const mark = () => {
    // The last heading that has passed the upper part of the window.
    const read = headings.findLast((heading) => heading.getBoundingClientRect().top < 140)
    for (const [id, link] of links) link.toggleAttribute('data-read', id === read?.id)
  }
  addEventListener('scroll', mark, { passive: true })
  mark()
}
