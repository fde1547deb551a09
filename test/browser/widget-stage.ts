/** What tests of the widget share: an assistant over a few documents, a model that writes, a page and a browser. */

import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer, type Server, type Socket } from 'node:net'
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { createAssistant, createModel, request, unique, url } from '../clients/harness'
import { sharedBrowser } from './chromium'
import { serveWidgetPage, type WidgetPage } from './widget-page'
import { startWriter, type Writer } from './writer'

export const QUESTION = 'How do I make a key for a page?'

const DOCUMENTS = [
  {
    id: 'keys',
    title: 'API keys',
    url: 'https://docs.example.com/keys',
    text: '## What a key may do\n\nThe admin key may do everything: never put it into a page. A key that is bound to an assistant may ask that assistant and nothing else. Keys are seen everywhere within five seconds.',
  },
  {
    id: 'widget',
    title: 'Put the chat on your site',
    url: 'https://docs.example.com/widget',
    text: 'Paste one script tag and one element into the page. The element takes the name of the assistant and a key.',
  },
]

/** A line to Parley that can be cut. */
export interface Line {
  url: string
  /** Breaks off what is open, and takes nothing more. */
  cut(): void
  mend(): void
  close(): void
}

async function startLine(): Promise<Line> {
  const { port } = new URL(url)
  const open = new Set<Socket>()
  let isCut = false
  const server: Server = createServer((near) => {
    if (isCut) return void near.destroy()
    const far = connect(Number(port), 'localhost')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(from)
      from
        .on('error', () => to.destroy())
        .on('close', () => {
          open.delete(from)
          to.destroy()
        })
      from.pipe(to)
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const drop = () => {
    for (const socket of open) socket.destroy()
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut() {
      isCut = true
      drop()
    },
    mend() {
      isCut = false
    },
    close() {
      drop()
      server.close()
    },
  }
}

export class Stage {
  readonly faults: string[] = []
  #contexts: BrowserContext[] = []

  private constructor(
    readonly browser: Browser,
    readonly writer: Writer,
    readonly site: WidgetPage,
    readonly line: Line,
  ) {}

  /** @param more properties of the assistant */
  static async set(more: Record<string, unknown> = {}): Promise<Stage> {
    const writer = await startWriter()
    const line = await startLine()
    const name = unique('help')
    const fields = ['title', 'text', 'url'].map((field) => ({ name: field, type: 'string' }))
    await request('POST', '/collections', { name, fields })
    for (const document of DOCUMENTS) await request('POST', `/collections/${name}/documents`, document)
    const model = await createModel({ model_name: 'openai/writer', openai_url: writer.url })
    const assistant = await createAssistant({
      model,
      collections: [name],
      title_field: 'title',
      url_field: 'url',
      followups: true,
      questions: [QUESTION, 'What does the element take?'],
      ...more,
    })
    const { body } = await request('POST', '/keys', {
      description: 'a page',
      actions: ['documents:search'],
      collections: ['*'],
      limits: { assistant },
    })
    const site = await serveWidgetPage(line.url, { assistant, key: body.value })
    return new Stage(await sharedBrowser(), writer, site, line)
  }

  async strike(): Promise<void> {
    this.site.server.close()
    this.line.close()
    await this.writer.stop()
  }

  /** A visitor with a browser of their own. */
  async visitor(options: BrowserContextOptions = {}): Promise<BrowserContext> {
    const context = await this.browser.newContext({ viewport: { width: 1000, height: 760 }, ...options })
    this.#contexts.push(context)
    return context
  }

  /** A tab of a visitor, with the widget ready. */
  async tab(
    context: BrowserContext,
    attributes: Record<string, string> = {},
    scheme = 'light',
  ): Promise<Page> {
    const page = await context.newPage()
    page.setDefaultTimeout(10_000)
    page.on('pageerror', (error) => this.faults.push(String(error)))
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') this.faults.push(message.text())
    })
    await page.goto(this.site.address(attributes, scheme))
    await page.waitForFunction("customElements.get('parley-chat')")
    return page
  }

  /** Closes what a test has opened. @returns what went wrong in its pages */
  async reset(): Promise<string[]> {
    this.writer.go()
    this.line.mend()
    for (const context of this.#contexts.splice(0)) await context.close()
    return this.faults.splice(0)
  }
}

export const field = (page: Page): Locator => page.getByRole('textbox', { name: 'Ask a question' })

export async function ask(page: Page, question = QUESTION): Promise<void> {
  await field(page).fill(question)
  await field(page).press('Enter')
}

/** Answers that have ended well. */
export const answers = (page: Page): Locator =>
  page.locator('.turn[aria-busy="false"]:has(.tools:not([hidden])) .prose')

/** @param count of answers that there are to be */
export async function answered(page: Page, count = 1): Promise<Locator> {
  await answers(page)
    .nth(count - 1)
    .waitFor()
  return answers(page).nth(count - 1)
}
