/**
 * A data folder of the version whose filters and orders parted words at signs: its values are found and sorted as they are
 * now, from the first request on.
 */
import { expect, test } from 'vitest'
import { openFolder } from './open-folder'

const { send } = openFolder('folder-before-joined-forms')

async function idsOf(parameters: Record<string, string>): Promise<string[]> {
  const asked = new URLSearchParams({ q: '*', ...parameters })
  const { status, text } = await send('GET', `/collections/people/documents/search?${asked}`)
  expect(status).toBe(200)
  const { hits }: { hits: { document: { id: string } }[] } = JSON.parse(text)
  return hits.map(({ document }) => document.id)
}

test.each([
  ['studio:=CenturyFox', ['neill']],
  ['studio:century fox', ['lodz']],
  ['name:oneill', ['neill']],
  ['name:[lodz, aeon]', ['aeon', 'lodz']],
  ['studio:=sstest', ['aeon']],
  ['tags:scifi', ['neill']],
  ['tags:!=hi-fi && tags:=[`hi fi`, 東京都]', ['zebra', 'lodz']],
  ['note:oneill', ['neill']],
  ['note:lodz', ['lodz']],
])('%s finds what it says, while the old forms are still there and afterwards', async (filter_by, ids) => {
  expect(await idsOf({ filter_by })).toEqual(ids)
})

test('names are sorted by their letters', async () => {
  await expect.poll(() => idsOf({ sort_by: 'name:asc' })).toEqual(['aeon', 'lodz', 'neill', 'zebra'])
})
