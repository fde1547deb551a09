/** Calls of tools in <parley-chat>: the visitor's leave, and functions of the page, in a real browser. */
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { request } from '../clients/harness'
import { serve } from '../serve'
import { violations } from './axe'
import { CHROMIUM } from './chromium'
import { answered, ask, Stage } from './widget-stage'

describe.runIf(CHROMIUM)('the widget', () => {
  let stage: Stage
  let visitor: BrowserContext
  let page: Page
  let shop: Awaited<ReturnType<typeof serve>>
  const booked: string[] = []

  beforeAll(async () => {
    shop = await serve(async (request, response) => {
      let body = ''
      for await (const piece of request) body += piece
      booked.push(body)
      response.end('Booked.')
    })
    await request('PUT', '/tools/book', {
      title: 'Book a table',
      description: 'Books a table.',
      parameters: { type: 'object', properties: { at: { type: 'string' } } },
      http: { method: 'POST', url: `${shop.url}/tables` },
    })
    await request('PUT', '/tools/cart', { description: 'What is in the cart.', page: true })
    stage = await Stage.set({ tools: ['book', 'cart'], followups: false })
  })
  afterAll(async () => {
    await stage.strike()
    await shop.stop()
  })

  beforeEach(async () => {
    booked.length = 0
    visitor = await stage.visitor()
    page = await stage.tab(visitor, { mode: 'inline' })
    return async () => expect(await stage.reset()).toEqual([])
  })

  const leave = () => page.locator('.leave')

  test('asks for leave in plain words, also after a reload, and books once it is given', async () => {
    stage.writer.call = { name: 'book', arguments: { at: '19:00' } }
    await ask(page, 'A table at seven, please.')
    await leave().waitFor()
    expect(await leave().textContent()).toMatch(/permission[\s\S]*Book a table[\s\S]*at[\s\S]*19:00/)
    expect(await violations(page)).toEqual([])
    expect(booked).toEqual([])
    await page.reload()
    await leave().waitFor()
    await leave().getByRole('button', { name: 'Allow', exact: true }).click()
    await answered(page)
    expect(await page.locator('.turn').count()).toBe(1)
    expect(await page.locator('.turn').textContent()).toContain('It says: Booked.')
    expect(await leave().count()).toBe(0)
    expect(booked).toEqual(['{"at":"19:00"}'])
    // No version of it is offered: it is one answer.
    await page.reload()
    await answered(page)
    expect(await page.locator('.turn .version').count()).toBe(0)
    expect(await page.locator('.call').textContent()).toContain('Book a table')
  })

  test('does nothing where leave is refused', async () => {
    stage.writer.call = { name: 'book', arguments: { at: '19:00' } }
    await ask(page, 'A table at seven, please.')
    await leave().getByRole('button', { name: 'Don’t allow' }).click()
    await answered(page)
    expect(await page.locator('.turn').textContent()).toContain('did not allow')
    expect(booked).toEqual([])
  })

  test('runs a function of its page', async () => {
    await page.evaluate(`document.querySelector('parley-chat').tools = { cart: async () => ({ items: 3 }) }`)
    stage.writer.call = { name: 'cart', arguments: {} }
    await ask(page, 'What is in my cart?')
    await page.getByText('It says: {"items":3}').first().waitFor()
    expect(await page.locator('.turn').count()).toBe(1)
  })
})
