/** What tests of the console share: a tab in which nothing may go wrong unseen, and axe over its document. */
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { expect } from 'vitest'
import { url } from '../clients/harness'
import { violations } from './axe'
import { launch } from './chromium'

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

/** Whether a page has no fault that axe knows, and nothing of it sticks out. @param state what the page shows, for the report */
export async function expectSound(page: Page, state: string): Promise<void> {
  const found = await violations(page)
  const tooWide = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
  expect([state, found, tooWide]).toEqual([state, [], 0])
}
