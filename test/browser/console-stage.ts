/** What tests of the console share: a tab in which nothing may go wrong unseen, and axe over its document. */
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { expect } from 'vitest'
import { url } from '../clients/harness'
import type { FakeServer } from '../console/server'
import { violations } from './axe'
import { sharedBrowser } from './chromium'

export const SIZES: Record<string, BrowserContextOptions> = {
  desktop: { viewport: { width: 1360, height: 860 } },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
}

/** Each size and each scheme once: what a size breaks it breaks in both schemes, and colours are the same on both sizes. */
export const LOOKS = [
  { size: 'desktop', colorScheme: 'light', options: { ...SIZES.desktop, colorScheme: 'light' } },
  { size: 'phone', colorScheme: 'dark', options: { ...SIZES.phone, colorScheme: 'dark' } },
] as const

export class ConsoleStage {
  readonly faults: string[] = []
  #contexts: BrowserContext[] = []

  private constructor(readonly browser: Browser) {}

  static async set(): Promise<ConsoleStage> {
    return new ConsoleStage(await sharedBrowser())
  }

  async tab(options: BrowserContextOptions = {}, address = ''): Promise<Page> {
    const context = await this.browser.newContext({ ...SIZES.desktop, ...options })
    this.#contexts.push(context)
    const page = await context.newPage()
    page.setDefaultTimeout(15_000)
    page.on('pageerror', (error) => this.faults.push(String(error)))
    page.on('console', (message) => {
      if (message.type() !== 'error' && message.type() !== 'warning') return
      const { url: where } = message.location()
      this.faults.push(`${message.text()} ${URL.canParse(where) ? new URL(where).pathname : ''}`)
    })
    await page.goto(`${url}/${address}`)
    return page
  }

  /** Closes what a test has opened. @returns what went wrong in its pages */
  async reset(): Promise<string[]> {
    for (const context of this.#contexts.splice(0)) await context.close()
    return this.faults.splice(0)
  }
}

/** Whether a page has no fault that axe knows, and nothing of it sticks out. @param state what the page shows, for the report @param rules axe's; none: all */
export async function expectSound(page: Page, state: string, rules?: string[]): Promise<void> {
  const found = await violations(page, rules)
  const tooWide = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
  expect([state, found, tooWide]).toEqual([state, [], 0])
}

/** Has a page ask a fake server for its data. Its documents, scripts and styles are Parley's own. */
export async function serveBy(page: Page, server: FakeServer): Promise<void> {
  await page.route('**/*', async (route) => {
    const request = route.request()
    if (request.resourceType() !== 'fetch') return route.continue()
    const body = request.postData()
    const response = await server.fetch(request.url(), {
      method: request.method(),
      headers: request.headers(),
      ...(body !== null && { body }),
    })
    await route.fulfill({
      status: response.status,
      headers: Object.fromEntries(response.headers),
      body: Buffer.from(await response.arrayBuffer()),
    })
  })
}
