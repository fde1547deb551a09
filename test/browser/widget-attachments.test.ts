/** Text files that a visitor attaches in <parley-chat>, in a real browser. */
import type { FileChooser, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { request } from '../clients/harness'
import { onePagePdf } from '../scripts/parley/files'
import { violations } from './axe'
import { CHROMIUM } from './chromium'
import { answered, ask, field, Stage } from './widget-stage'

const file = (name: string, text: string | Buffer = 'The key of the cellar is under the mat.') => ({
  name,
  mimeType: 'text/plain',
  buffer: Buffer.from(text),
})

/** Hands files to the page as another program would. */
const bring = (page: Page, event: 'drop' | 'paste', name: string, text: string) =>
  page.evaluate(
    `{
      const data = new DataTransfer()
      data.items.add(new File([${JSON.stringify(text)}], ${JSON.stringify(name)}, { type: 'text/plain' }))
      const root = document.querySelector('parley-chat').shadowRoot
      const options = { bubbles: true, cancelable: true }
      if (${JSON.stringify(event)} === 'drop') {
        const main = root.querySelector('.main')
        main.dispatchEvent(new DragEvent('dragover', { ...options, dataTransfer: data }))
        main.dispatchEvent(new DragEvent('drop', { ...options, dataTransfer: data }))
      } else root.querySelector('textarea').dispatchEvent(new ClipboardEvent('paste', { ...options, clipboardData: data }))
    }`,
  )

describe.runIf(CHROMIUM)('the widget', () => {
  let stage: Stage
  let page: Page
  let brought: Record<string, unknown>[][] = []
  let choosers: FileChooser[] = []

  beforeAll(async () => {
    stage = await Stage.set({ attachments: true })
  })
  afterAll(() => stage.strike())

  beforeEach(async () => {
    brought = []
    choosers = []
    stage.writer.answer = (_, documents) => {
      brought.push(documents.filter(({ file: name }) => name !== undefined))
      return 'It is **under the mat**.'
    }
    return async () => expect(await stage.reset()).toEqual([])
  })

  const open = async (attributes: Record<string, string> = {}, options = {}, scheme = 'light') => {
    page = await stage.tab(await stage.visitor(options), attributes, scheme)
    // From now on, and not from when one is expected: a key can be pressed before the browser has heard of that.
    page.on('filechooser', (chooser) => choosers.push(chooser))
    await field(page).focus()
  }
  const button = () => page.getByRole('button', { name: 'Attach files' })
  const chips = () => page.locator('.attachments .file-name')
  const focused = () =>
    page.evaluate(
      "document.querySelector('parley-chat').shadowRoot.activeElement?.getAttribute('aria-label')",
    )
  /** Gives files to the browser's choice of files, once it is open. */
  const give = async (...files: ReturnType<typeof file>[]) => {
    await expect.poll(() => choosers.length, { timeout: 10_000 }).toBe(1)
    await choosers.pop()!.setFiles(files)
  }
  const choose = async (...files: ReturnType<typeof file>[]) => {
    await button().click()
    await give(...files)
  }

  test('sends files that were chosen, dropped and pasted, with one question and with a new answer to it', async () => {
    await open()
    await choose(file('cellar.txt'))
    await chips().first().waitFor()
    await bring(page, 'drop', 'attic.md', 'The attic is locked.')
    await expect.poll(() => chips().count()).toBe(2)
    await bring(page, 'paste', 'roof.log', 'The roof leaks.')
    await expect.poll(() => chips().allTextContents()).toEqual(['cellar.txt', 'attic.md', 'roof.log'])
    await ask(page, 'Where is the key?')
    await answered(page)
    expect(brought[0]).toEqual([
      { file: 'cellar.txt', text: 'The key of the cellar is under the mat.' },
      { file: 'attic.md', text: 'The attic is locked.' },
      { file: 'roof.log', text: 'The roof leaks.' },
    ])
    expect(await chips().count()).toBe(0)
    expect(await page.locator('.turn .file').allTextContents()).toEqual([
      'cellar.txt',
      'attic.md',
      'roof.log',
    ])

    await page.getByRole('button', { name: 'Regenerate' }).click()
    await expect.poll(() => brought.length).toBe(2)
    await answered(page)
    expect(brought[1]).toEqual(brought[0])

    await page.getByRole('textbox', { name: 'Ask a question' }).fill('And what of the door?')
    await page.keyboard.press('Enter')
    await answered(page, 2)
    expect(brought[2]).toEqual([])
    const id = await page.evaluate("document.querySelector('parley-chat').conversation")
    expect(JSON.stringify((await request('GET', `/conversations/${id}`)).body)).not.toContain('leaks')
  })

  test('tells the limits, and names what does not fit', async () => {
    await open()
    await button().waitFor()
    const limits = await button().getAttribute('aria-description')
    expect(limits).toMatch(/^Texts, PDFs and pictures: up to 10, with \d+ KB of text together\.$/)
    const bytes = Number(/(\d+) KB/.exec(limits!)![1]) * 1024
    await choose(
      file('fits.txt'),
      file('picture.png', Buffer.from([0x89, 0x50, 0x4e, 0x47, 0xff, 0])),
      file('long.txt', 'x'.repeat(bytes)),
    )
    await page.getByText('Not attached: picture.png, long.txt.').waitFor()
    expect(await chips().allTextContents()).toEqual(['fits.txt'])
    expect(await page.locator('.attach-limits').isVisible()).toBe(true)
    await choose(...Array.from({ length: 11 }, (_, n) => file(`${n}.txt`)))
    await page.getByText('Not attached: 9.txt, 10.txt.').waitFor()
    expect(await chips().count()).toBe(10)
  })

  test('reads the text of PDFs: the beginning of one that is too long, and none of one that holds no text', async () => {
    await open()
    await button().waitFor()
    const pdf = (name: string, text: string) => file(name, Buffer.from(onePagePdf(text)))
    await choose(pdf('key.pdf', 'The key is under the mat.'), file('broken.pdf', 'no pdf'))
    await page.getByText('Not attached: broken.pdf.').waitFor()
    const [, size] = /(\d+) KB/.exec((await button().getAttribute('aria-description'))!)!
    const key = '## Page 1\n\nThe key is under the mat.'
    const taken = 'key.pdf'.length + key.length + 'full.txt'.length + 'long.pdf'.length
    const room = '## Page 1\n\nThe key of the attic'.length + 3
    await choose(file('full.txt', 'x'.repeat(Number(size) * 1024 - taken - room)))
    await choose(pdf('long.pdf', 'The key of the attic hangs behind the door.'))
    await page.getByText('Only the beginning of long.pdf fits.').waitFor()
    await ask(page, 'Where is the key?')
    await answered(page)
    expect(brought[0]!.map(({ file: name }) => name)).toEqual(['key.pdf', 'full.txt', 'long.pdf'])
    expect(brought[0]![0]!.text).toBe(key)
    expect(brought[0]![2]!.text).toBe('## Page 1\n\nThe key of the attic')
  })

  test('brings pictures, made smaller than what the model takes', async () => {
    await open()
    await button().waitFor()
    // Made in the browser: 2,000 pixels wide.
    const png = await page.evaluate(`(() => {
      const canvas = Object.assign(document.createElement('canvas'), { width: 2000, height: 1000 })
      canvas.getContext('2d').fillRect(0, 0, 900, 900)
      return canvas.toDataURL('image/png').split(',')[1]
    })()`)
    await choose({ ...file('cat.png', Buffer.from(String(png), 'base64')), mimeType: 'image/png' })
    await chips().first().waitFor()
    const sent = page.waitForRequest(
      (request) => request.method() === 'POST' && request.url().endsWith('/conversations'),
    )
    await ask(page, 'What is on it?')
    const [picture] = JSON.parse((await sent).postData()!).files
    expect(picture).toMatchObject({ name: 'cat.png', type: 'image/jpeg' })
    const size = await page.evaluate(`createImageBitmap(
      new Blob([Uint8Array.from(atob('${picture.data}'), (letter) => letter.charCodeAt(0))], { type: 'image/jpeg' })
    ).then(({ width, height }) => [width, height])`)
    expect(size).toEqual([1_568, 784])
    await answered(page)
    expect(stage.writer.pictures.at(-1)).toEqual([`data:image/jpeg;base64,${picture.data}`])
  })

  test('lets files be attached and removed with the keyboard alone', async () => {
    await open()
    await button().waitFor()
    await page.keyboard.press('Shift+Tab')
    expect(await focused()).toBe('Attach files')
    await page.keyboard.press('Enter')
    await give(file('a.txt'), file('b.txt'))
    await expect.poll(() => chips().count()).toBe(2)
    await page.getByText('Attached files: a.txt, b.txt').waitFor({ state: 'attached' })
    await page.keyboard.press('Shift+Tab')
    expect(await focused()).toBe('Remove: b.txt')
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('Enter')
    expect(await focused()).toBe('Remove: b.txt')
    await page.keyboard.press('Space')
    expect(await chips().count()).toBe(0)
    expect(await focused()).toBe('Attach files')
  })

  for (const { size, scheme, options } of [
    { size: 'desktop', scheme: 'light', options: {} },
    {
      size: 'phone',
      scheme: 'dark',
      options: { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true },
    },
  ]) {
    test(`has no fault that axe knows with files attached, on a ${size}, ${scheme}`, async () => {
      await open({}, options, scheme)
      await choose(
        file('a note with a rather long name that has to break somewhere.txt'),
        file('x.bin', Buffer.from([0])),
      )
      await page.getByText('Not attached: x.bin.').waitFor()
      expect(await violations(page)).toEqual([])
      for (const name of ['Attach files', 'Remove: a note']) {
        const box = await page.getByRole('button', { name }).boundingBox()
        expect(Math.min(box!.width, box!.height)).toBeGreaterThanOrEqual(24)
      }
      await ask(page)
      await answered(page)
      expect(await violations(page)).toEqual([])
    })
  }
})

describe.runIf(CHROMIUM)('the widget of an assistant without attachments', () => {
  test('offers none, and takes none', async () => {
    const stage = await Stage.set()
    try {
      const page = await stage.tab(await stage.visitor())
      await page.locator('.suggestion').first().waitFor()
      expect(await page.getByRole('button', { name: 'Attach files' }).count()).toBe(0)
      await bring(page, 'drop', 'a.txt', 'a')
      await ask(page)
      await answered(page)
      expect(await page.locator('.file').count()).toBe(0)
    } finally {
      await stage.strike()
    }
  })
})
