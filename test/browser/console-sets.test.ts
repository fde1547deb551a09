/** Question sets in the console: made, run twice and compared, in a real browser against a real Worker. */
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { loadSample } from '../../scripts/sample.mjs'
import { KEY, request, unique, url } from '../clients/harness'
import { CHROMIUM } from './chromium'
import { ConsoleStage, expectSound, LOOKS } from './console-stage'

const QUESTION = 'How does Parley store history?'
const RIGHT = 'docs/how-does-parley-store-history'
const SET = [
  { question: QUESTION, relevant: [RIGHT.slice('docs/'.length)], answer: 'As two documents.' },
  { question: 'What is the boiling point of zinc?', unanswerable: true },
]
  .map((each) => JSON.stringify(each))
  .join('\n')

describe.runIf(CHROMIUM)('the console', () => {
  let stage: ConsoleStage

  beforeAll(async () => {
    await loadSample(url, KEY)
    stage = await ConsoleStage.set()
  })
  beforeEach(() => async () => expect(await stage.reset()).toEqual([]))

  const makeSet = async (page: Page, name: string) => {
    await page.getByRole('link', { name: 'New set' }).first().click()
    await page.getByLabel('Name', { exact: true }).fill(name)
    await page.getByRole('textbox', { name: 'Questions' }).fill('{"q": 1}')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('line 1: it has no `question`').waitFor()
    expect(new URL(page.url()).hash).toBe('#/sets?new=1')
    await page.getByRole('textbox', { name: 'Questions' }).fill(SET)
    await expectSound(page, 'new set')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name, level: 1 }).waitFor()
  }
  const runSet = async (page: Page, rows: number) => {
    await page.getByRole('button', { name: 'Ask 2 questions' }).click()
    await expect.poll(() => page.locator('tbody tr').count(), { timeout: 20_000 }).toBe(rows)
    await page.getByRole('button', { name: 'Ask 2 questions' }).waitFor()
  }

  for (const { size, colorScheme, options } of LOOKS) {
    test(`runs a set of questions, twice, and shows what changed, on a ${size}, ${colorScheme}`, async () => {
      const name = unique('set')
      for (const { name: other } of (await request('GET', '/question_sets')).body.sets)
        await request('DELETE', `/question_sets/${other}`)
      const page = await stage.tab(options, '#/sets')
      await page.getByRole('heading', { name: 'No question sets yet' }).waitFor()
      await expectSound(page, 'no sets')
      await makeSet(page, name)
      await runSet(page, 1)
      // The second run searches a field that cannot hold the answer.
      await page.getByLabel('Fields to search').fill('title')
      await page.getByLabel('Documents per search').fill('1')
      await page.getByLabel('Filter', { exact: true }).fill('id:=nothing')
      await runSet(page, 2)
      await expectSound(page, 'set')
      // What is kept outlasts a reload.
      await page.reload()
      await page
        .getByRole('link', { name: /20\d\d/ })
        .last()
        .click()
      await page.getByText('expected document: rank 1').waitFor()
      await page.getByRole('heading', { name: 'What is the boiling point of zinc?' }).waitFor()
      await expectSound(page, 'run')
      await page.getByRole('link', { name }).click()
      await expect.poll(() => page.locator('tbody input').count(), { timeout: 10_000 }).toBe(2)
      for (const box of await page.locator('tbody input').all()) await box.check()
      await page.getByRole('link', { name: 'Compare the two' }).click()
      const outcome = page.locator('.outcomes > li', { hasText: QUESTION })
      await outcome.getByText('no longer cites the right document').waitFor()
      await outcome.getByText('expected document: not found').waitFor()
      expect(await page.locator('.outcomes > li').count()).toBe(1)
      await expectSound(page, 'two runs')
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'JSON' }).click(),
      ])
      const exported = JSON.parse(readFileSync((await file.path())!, 'utf8'))
      expect(exported.now.outcomes).toHaveLength(2)
      expect(exported.before.outcomes[0]).toMatchObject({ question: QUESTION, rank: 1, cited_right: true })
      expect(exported.questions[0].changes).toContain('right before, declined wrongly now')
      await outcome.getByRole('link', { name: 'Why these answers?' }).click()
      await page.locator('.answer-side .waterfall').nth(1).waitFor()
    })
  }

  test('says what to do at an address that leads to nothing', async () => {
    const page = await stage.tab({}, '#/sets/none')
    await page.getByRole('heading', { name: 'There is no such set' }).waitFor()
    await page.goto(`${url}/#/sets/none/none`)
    await page.getByRole('heading', { name: 'There is no such run' }).waitFor()
    await expectSound(page, 'no run')
  })
})
