/** The browser of the browser tests, where there is one. */
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

export const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  (path) => existsSync(path),
)
if (CHROMIUM === undefined)
  console.log('Left out: the browser tests, since there is no chromium (apt-get install chromium).')

const QUIET = [
  '--no-sandbox',
  '--disable-gpu',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

export const launch = (more: string[] = []): Promise<Browser> =>
  chromium.launch({ executablePath: CHROMIUM ?? '', args: [...QUIET, ...more] })
