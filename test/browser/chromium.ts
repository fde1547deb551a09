/** The browser of the browser tests, where there is one. */
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

/** Chromium without windows first: it takes less than half the time of the whole one to open a page. */
export const CHROMIUM = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome']
  .map((name) => `/usr/bin/${name}`)
  .find((path) => existsSync(path))
if (CHROMIUM === undefined)
  console.log(
    'Left out: the browser tests, since there is no chromium (apt-get install chromium-headless-shell).',
  )

const QUIET = [
  '--no-sandbox',
  '--disable-gpu',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** @param more options of a browser of one's own */
export const launch = (more: string[] = []): Promise<Browser> =>
  chromium.launch({ executablePath: CHROMIUM ?? '', args: [...QUIET, ...more] })

let shared: Promise<Browser> | undefined

/** @returns the browser that all tests of a process share, and that ends with it: each closes the pages that it opens */
export function sharedBrowser(): Promise<Browser> {
  shared ??= launch()
  return shared
}
