/** What tests of the console share: a tab in which nothing may go wrong unseen, and axe over its document. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { expect } from 'vitest'
import { url } from '../clients/harness'
import { launch } from './chromium'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

export const SIZES: Record<string, BrowserContextOptions> = {
  desktop: { viewport: { width: 1360, height: 860 } },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
}

export class ConsoleStage {
  readonly faults: string[] = []
  #contexts: BrowserContext[] = []

  private constructor(readonly browser: Browser) {}

  static async set(): Promise<ConsoleStage> {
    return new ConsoleStage(await launch())
  }

  async tab(options: BrowserContextOptions = {}, address = ''): Promise<Page> {
    const context = await this.browser.newContext({ ...SIZES.desktop, ...options })
    this.#contexts.push(context)
    const page = await context.newPage()
    page.setDefaultTimeout(15_000)
    page.on('pageerror', (error) => this.faults.push(String(error)))
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') this.faults.push(message.text())
    })
    await page.goto(`${url}/${address}`)
    return page
  }

  /** Closes what a test has opened. @returns what went wrong in its pages */
  async reset(): Promise<string[]> {
    for (const context of this.#contexts.splice(0)) await context.close()
    return this.faults.splice(0)
  }

  async strike(): Promise<void> {
    await this.browser.close()
  }
}

/** Waits until no animation has run for two frames, those that begin while it waits included: colours are judged as they end. */
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

/** Whether a page has no fault that axe knows, and nothing of it sticks out. @param state what the page shows, for the report */
export async function expectSound(page: Page, state: string): Promise<void> {
  await standStill(page)
  await page.evaluate(AXE)
  const found = (await page.evaluate(`axe.run(document, {
    preload: false,
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
  }).then(({ violations }) => violations)`)) as {
    id: string
    nodes: { html: string; failureSummary: string }[]
  }[]
  const violations = found.map(({ id, nodes }) => `${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`)
  const tooWide = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
  expect([state, violations, tooWide]).toEqual([state, [], 0])
}
