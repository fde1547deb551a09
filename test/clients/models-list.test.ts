/** `npm run models -- --check`, against a counterpart of Cloudflare's API. */
import { expect, test } from 'vitest'
import { modelsTable } from '../../scripts/costs/workers-ai.mjs'
import { api, listModels, loggedIn, stageDeployments } from './deploy-stage'

stageDeployments()

const modelOf = (name: string) => api.models.find((model) => model.name.endsWith(name))!
const set = (name: string, id: string, value: unknown) => {
  const { properties } = modelOf(name)
  const property = properties.find((each) => each.property_id === id)
  if (property) property.value = value
  else properties.push({ property_id: id, value })
}

test('the list of models is compared with the catalogue of the account', { timeout: 600_000 }, async () => {
  const same = await listModels(loggedIn(), '--check')
  expect(same.output).toContain('as they are listed')
  expect(same.code).toBe(0)

  api.models = api.models.filter(
    ({ name }) => !name.endsWith('/llama-3.2-1b-instruct') && !name.endsWith('/bge-m3'),
  )
  set('/glm-4.7-flash', 'context_window', '65536')
  set('/granite-4.0-h-micro', 'price', [
    { unit: 'per M input tokens', price: 0.02, currency: 'USD' },
    { unit: 'per M output tokens', price: 0.11, currency: 'USD' },
  ])
  set('/gpt-oss-20b', 'planned_deprecation_date', '2026-05-30')
  set('/gpt-oss-120b', 'planned_deprecation_date', '2999-01-31')
  set('/llama-3.3-70b-instruct-fp8-fast', 'require_workers_paid', 'true')
  modelOf('/gemma-4-26b-a4b-it').thinks = false
  const other = await listModels(loggedIn(), '--check')
  expect(other.code).toBe(1)
  expect(other.output.trim().split('\n')).toEqual([
    '@cf/ibm-granite/granite-4.0-h-micro: dollars for a million tokens in: 0.017 here, 0.02 in the catalogue',
    '@cf/meta/llama-3.2-1b-instruct: not in the catalogue any more',
    '@cf/zai-org/glm-4.7-flash: context: 131072 here, 65536 in the catalogue',
    '@cf/google/gemma-4-26b-a4b-it: thinks by default: true here, false in the catalogue',
    '@cf/openai/gpt-oss-20b: was retired on 2026-05-30',
    '@cf/meta/llama-3.3-70b-instruct-fp8-fast: for the Paid plan only: false here, true in the catalogue',
    '@cf/openai/gpt-oss-120b: will be retired on 2999-01-31',
    '@cf/baai/bge-m3: not in the catalogue any more',
    '',
    'Bring scripts/costs/workers-ai.mjs up to date, and docs/models.md with it.',
  ])
})

test('without a token the list is shown, and a check says what is missing', {
  timeout: 600_000,
}, async () => {
  const shown = await listModels({ CLOUDFLARE_API_BASE_URL: api.url })
  expect([shown.code, shown.output]).toEqual([0, expect.stringContaining(modelsTable())])
  const refused = await listModels({ CLOUDFLARE_API_BASE_URL: api.url }, '--check')
  expect([refused.code, refused.output]).toEqual([1, expect.stringContaining('CLOUDFLARE_API_TOKEN')])
  api.refuseOnce(/models\/search$/, 403, 10000, 'Authentication error')
  const forbidden = await listModels(loggedIn(), '--check')
  expect(forbidden.code).toBe(1)
  expect(forbidden.output).toContain('Authentication error [code: 10000]')
  expect(forbidden.output).toContain('Workers AI Read')
})
