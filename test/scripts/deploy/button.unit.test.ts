/** What the Deploy to Cloudflare button reads: https://developers.cloudflare.com/workers/platform/deploy-buttons/ */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { unstable_readConfig } from 'wrangler'
import { wanted } from '../../../scripts/deploy/names.mjs'

const root = join(import.meta.dirname, '../../..')
const read = (name: string) => readFileSync(join(root, name), 'utf8')
const config = unstable_readConfig({ config: join(root, 'wrangler.toml') }, { hideWarnings: true })
const { cloudflare, scripts } = JSON.parse(read('package.json'))

test('the example asks for each secret, and has a value for none', () => {
  const entries = read('.dev.vars.example')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  expect(entries).toEqual(wanted().secrets.map((name) => `${name}=`))
})

test('each secret, variable and resource is described in package.json', () => {
  const named = [
    ...wanted().secrets,
    ...Object.keys(config.vars),
    ...[...config.d1_databases, ...config.vectorize, config.ai].map(
      (bound: { binding: string }) => bound.binding,
    ),
  ]
  const described = Object.keys(cloudflare.bindings)
  expect(named.filter((name) => !described.includes(name))).toEqual([])
})

test('the deploy script is one that the button finds', () => {
  expect(scripts.deploy).toMatch(/^node \S.*scripts\/deploy\.mjs$/)
})
