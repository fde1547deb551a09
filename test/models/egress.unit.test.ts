import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { unstable_readConfig } from 'wrangler'
import { type Egress, requireAllowed } from '../../src/models/egress'
import { azure } from '../../src/models/openai-compatible'
import { ask, config, localEnv } from './ask'

const deployed = unstable_readConfig(
  { config: join(import.meta.dirname, '../../wrangler.toml') },
  { hideWarnings: true },
)

/** As it is deployed. */
const STRICT: Egress = { ALLOWED_HOSTS: String(deployed.vars.ALLOWED_HOSTS) }
const PUBLIC: Egress = { ALLOWED_HOSTS: '*' }

const isAllowed = (url: string, env: Egress): boolean => {
  try {
    requireAllowed(url, env)
    return true
  } catch (error) {
    expect(error).toMatchObject({ name: 'ApiError', status: 400 })
    return false
  }
}

test.each([
  'https://api.openai.com/v1/chat/completions',
  'https://eu.api.openai.com/v1/chat/completions',
  'https://acme.openai.azure.com/openai/deployments/x/chat/completions?api-version=1',
  'https://acme.cognitiveservices.azure.com/openai',
  'https://generativelanguage.googleapis.com/v1beta',
  'https://api.cloudflare.com/client/v4',
  'https://gateway.ai.cloudflare.com/v1/a/b/openai',
  'https://api.anthropic.com/v1/messages',
  'https://bedrock-runtime.eu-central-1.amazonaws.com/model',
])('%s is a provider: always allowed over https, never without', (url) => {
  expect(isAllowed(url, STRICT)).toBe(true)
  expect(isAllowed(url.replace('https:', 'http:'), PUBLIC)).toBe(false)
  expect(isAllowed(url.replace('.com/', '.com:8443/'), STRICT)).toBe(false)
  expect(isAllowed(url.replace('.com/', '.com.evil.example/'), STRICT)).toBe(false)
  expect(isAllowed(url.replace('https://', 'https://evil.example\\@'), STRICT)).toBe(false)
})

test('other public names need a word in the configuration', () => {
  expect(isAllowed('https://openrouter.ai/api', STRICT)).toBe(false)
  expect(isAllowed('https://openrouter.ai/api', PUBLIC)).toBe(true)
  expect(isAllowed('http://openrouter.ai/api', PUBLIC)).toBe(false)
  expect(isAllowed('https://llm.example:8443/v1', PUBLIC)).toBe(true)
})

test.each([
  'https://localhost',
  'https://LOCALHOST.',
  'https://app.localhost',
  'https://ollama',
  'https://metadata.google.internal/computeMetadata/v1',
  'https://printer.local',
  'https://router.lan',
  'https://nas.home.arpa',
  'https://1.0.0.127.in-addr.arpa',
  'https://127.0.0.1',
  'https://2130706433',
  'https://0x7f000001',
  'https://0177.0.0.1',
  'https://127.1',
  'https://1.1.1.1',
  'https://169.254.169.254/latest/meta-data',
  'https://[::1]',
  'https://[::ffff:127.0.0.1]',
  'https://[::ffff:7f00:1]',
  'https://[fe80::1]',
  'https://[fd00::1]',
  'https://[64:ff9b::7f00:1]',
  'https://①②⑦.⓪.⓪.①',
  'https://127。0。0。1',
  'https://127.0.0.1.',
  'https://user:secret@openrouter.ai',
  'file:///etc/passwd',
  'ftp://openrouter.ai',
  'data:text/plain,x',
  'openrouter.ai',
  '//openrouter.ai',
  '',
])('%s is refused unless it is listed', (url) => {
  expect(isAllowed(url, STRICT)).toBe(false)
  expect(isAllowed(url, PUBLIC)).toBe(false)
})

describe('every form of an address', () => {
  const forms = (address: number): string[] => {
    const bytes = [24, 16, 8, 0].map((shift) => (address >>> shift) & 255)
    const [a, b, c, d] = bytes as [number, number, number, number]
    const low24 = address & 0xffffff
    return [
      bytes.join('.'),
      `${bytes.join('.')}.`,
      String(address),
      `0x${address.toString(16)}`,
      `0${address.toString(8)}`,
      bytes.map((byte) => `0x${byte.toString(16)}`).join('.'),
      bytes.map((byte) => `0${byte.toString(8)}`).join('.'),
      `${a}.${low24}`,
      `${a}.${b}.${c * 256 + d}`,
      `[::ffff:${bytes.join('.')}]`,
      `[::${bytes.join('.')}]`,
      `[64:ff9b::${bytes.join('.')}]`,
      `[2002:${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}::]`,
      encodeURIComponent(bytes.join('.')).replaceAll('.', '%2e'),
    ]
  }

  it('is refused while nothing lists it, on any scheme, port and path', () => {
    fc.assert(
      fc.property(
        fc.nat(0xffffffff),
        fc.constantFrom('http', 'https', 'HTTPS'),
        fc.constantFrom('', ':80', ':443', ':11434'),
        fc.constantFrom('', '/', '/v1', '/..//', '?@api.openai.com', '#.openai.azure.com'),
        (address, scheme, port, path) => {
          for (const form of forms(address)) {
            expect(isAllowed(`${scheme}://${form}${port}${path}`, PUBLIC)).toBe(false)
          }
        },
      ),
      { numRuns: 300 },
    )
  })

  it('is refused for any IPv6 address', () => {
    fc.assert(
      fc.property(fc.ipV6(), (address) => {
        expect(isAllowed(`https://[${address}]/`, PUBLIC)).toBe(false)
      }),
    )
  })
})

test('whatever is allowed by default is https to a name with a dot', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.webUrl({ withQueryParameters: true }), fc.string(), fc.webAuthority()),
      (text) => {
        for (const url of [text, `https://${text}`]) {
          if (!isAllowed(url, PUBLIC)) continue
          const { protocol, hostname } = new URL(url)
          expect(protocol).toBe('https:')
          expect(hostname).toMatch(/^[^[\]:]*[^.\d[\]:][^[\]:]*\.?$/)
          expect(hostname.replace(/\.+$/, '')).toContain('.')
        }
      },
    ),
  )
})

test.each([
  ['localhost', 'http://localhost:11434/v1', true],
  ['localhost', 'https://localhost', true],
  ['localhost:11434', 'http://localhost:11434', true],
  ['localhost:11434', 'http://localhost:8787', false],
  ['vllm.internal:80', 'http://vllm.internal/v1', true],
  ['10.0.0.7', 'http://10.0.0.7:8000', true],
  ['10.0.0.7', 'http://167772167:8000', true],
  ['10.0.0.7', 'http://10.0.0.8', false],
  ['[::1]', 'http://[0:0::1]:1234', true],
  ['*.example.com', 'http://a.b.example.com', true],
  ['*.example.com', 'https://example.com', false],
  ['*.example.com', 'https://badexample.com', false],
  [' LLM.Example , other ', 'http://llm.example', true],
  ['*, localhost', 'http://127.0.0.1', false],
])('ALLOWED_HOSTS=%s and %s: %s', (ALLOWED_HOSTS, url, allowed) => {
  expect(isAllowed(url, { ALLOWED_HOSTS })).toBe(allowed)
})

test('a refusal says what to do', () => {
  expect(() => requireAllowed('http://169.254.169.254/latest', PUBLIC)).toThrow(
    'Calls to `http://169.254.169.254` are not allowed. To allow them, add `169.254.169.254` to the variable ALLOWED_HOSTS of the deployment.',
  )
})

describe('models', () => {
  const env = { ...localEnv, ALLOWED_HOSTS: '*' } as Cloudflare.Env
  const inside = 'http://127.0.0.1:1'
  it.each([
    { model_name: 'openai/x', api_key: 'k', openai_url: inside },
    { model_name: 'vllm/x', vllm_url: inside },
    { model_name: 'azure/x', api_key: 'k', url: inside },
    { model_name: 'google/x', api_key: 'k', google_url: inside },
    { model_name: 'cloudflare/@cf/x', api_key: 'k', account_id: 'a', cloudflare_url: inside },
  ])('are not called inside: %j', async (model) => {
    await expect(ask(model, {}, undefined, env)).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('ALLOWED_HOSTS'),
    })
  })

  it('of Azure, which has no live check, are refused when they are made', () => {
    const model = config({ model_name: 'azure/x', api_key: 'k', url: inside })
    expect(() => azure.validate(model, env)).toThrow('ALLOWED_HOSTS')
  })
})
