/** Names of sources that are given none. */
import { expect, test } from 'vitest'
import { nameOf } from '../../../scripts/parley/import/site.mjs'

test('sites on two ports of a machine, a site and its feed, and parts of a site have names of their own', () => {
  const names = [
    'https://docs.example.com/',
    'http://127.0.0.1:8332/',
    'http://127.0.0.1:8333/',
    'https://docs.example.com/feed.xml',
    'https://docs.example.com/guide/de/',
    'https://github.com/o/r/archive/refs/heads/main.tar.gz#docs/en',
    'r2://docs/guide/',
    `https://docs.example.com/${'long/'.repeat(60)}`,
    'https://münchen.example/straße',
  ].map(nameOf)
  expect(names.slice(0, 7)).toEqual([
    'docs.example.com',
    '127.0.0.1-8332',
    '127.0.0.1-8333',
    'docs.example.com-feed.xml',
    'docs.example.com-guide-de',
    'github.com-o-r-archive-refs-heads-main.tar.gz-docs-en',
    'docs-guide',
  ])
  for (const name of names) expect(name).toMatch(/^[\w.-]{1,128}$/)
})
