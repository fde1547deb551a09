/** What axe finds wrong with a page, shadow trees included. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/**
 * Waits until no animation has run for two frames, those included that begin while it waits. Colours are judged as they
 * are in the end.
 */
async function standStill(page: Page): Promise<void> {
  await page.evaluate(`(async () => {
    const running = () => [document, ...[...document.querySelectorAll('*')].flatMap((element) => element.shadowRoot ?? [])]
      .flatMap((root) => root.getAnimations())
      .filter(({ effect, playState }) => playState !== 'finished' && effect.getTiming().iterations !== Infinity)
    for (let still = 0; still < 2; still++) {
      await new Promise(requestAnimationFrame)
      const animations = running()
      if (animations.length) still = -1
      await Promise.all(animations.map(({ finished }) => finished.catch(() => {})))
    }
  })()`)
}

/** The rules that the text of a page can break by itself; the others are about what all pages of a kind share. */
export const TEXT_RULES = [
  'definition-list',
  'duplicate-id-aria',
  'empty-heading',
  'empty-table-header',
  'heading-order',
  'image-alt',
  'link-name',
  'list',
  'page-has-heading-one',
  'scrollable-region-focusable',
  'table-duplicate-name',
  'td-headers-attr',
  'th-has-data-cells',
]

const ALL_RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

/** @returns a sentence for each of the rules that the page breaks, in its state once it stands still */
export async function violations(page: Page, rules = ALL_RULES): Promise<string[]> {
  await standStill(page)
  // What a page has loaded once is there in each of its states.
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(AXE)
  const found = (await page.evaluate(`axe.run(document, {
    preload: false,
    // What passed is not told, and no selectors are: neither changes what is found, and both take a fifth of the time.
    resultTypes: ['violations'],
    selectors: false,
    runOnly: ${JSON.stringify(rules)},
  }).then(({ violations }) => violations)`)) as {
    id: string
    nodes: { html: string; failureSummary: string }[]
  }[]
  return found.map(({ id, nodes }) => `${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`)
}
