import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { unstable_readConfig } from 'wrangler'
import { workerFirst } from '../../scripts/direct.mjs'

const root = join(import.meta.dirname, '../..')
const { assets } = unstable_readConfig({ config: join(root, 'wrangler.toml') }, { hideWarnings: true })

const first = workerFirst(assets)

/** Whether the Worker has a request at once. */
const isDirect = (path: string) => first.test(path.replace(/\?.*/, ''))

it('sends questions and searches past the static files', () => {
  for (const path of [
    '/',
    '/health',
    '/conversations',
    '/conversations?debug=true',
    '/collections/facts/documents/search?q=a',
    '/multi_search?conversation=true',
    '/chat/stream',
    '/a/guide/chat',
    '/v/1/chat',
    '/ui/guide',
    '/v1/chat/completions',
    '/v1/responses',
  ]) {
    expect([path, isDirect(path)]).toEqual([path, true])
  }
})

it('hides no static file', () => {
  const files = readdirSync(join(root, 'ui'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(join(root, 'ui').length))
  expect(files).toContain('/index.html')
  for (const file of files) {
    expect([file, isDirect(file)]).toEqual([file, false])
    const page = file.replace(/\.html$/, '')
    expect([page, isDirect(page)]).toEqual([page, false])
  }
  expect(workerFirst({ run_worker_first: true }).test('/')).toBe(false)
})

it('reads rules as paths, not as regular expressions', () => {
  const rules = workerFirst({ run_worker_first: ['/', '/a.json', '/b/*', '!/b/file'] })
  const paths = ['/', '/a.json', '/axjson', '/x/a.json', '/a.json/', '/b', '/b/', '/b/c/d']
  expect(paths.filter((path) => rules.test(path))).toEqual(['/', '/a.json', '/b/', '/b/c/d'])
})
