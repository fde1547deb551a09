// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of connectors look like this
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Connector, fillJson, fillText, urlOf } from '../../src/models/connector'

describe('a template', () => {
  const BODY =
    '{"model": "${parameters.model}", "messages": ${parameters.messages}, "n": ${parameters.n:-1}, "stop": "${parameters.stop:-null}"}'

  test('is filled in one pass, whatever the values say', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.array(fc.record({ role: fc.string(), content: fc.string() })),
        (model, messages) => {
          const hostile = [
            ...messages,
            { role: 'user', content: '${parameters.model} ${credential.key} $& $1' },
          ]
          expect(fillJson(BODY, { model, messages: hostile })).toEqual({
            model,
            messages: hostile,
            n: 1,
            stop: null,
          })
        },
      ),
    )
  })

  test('keeps every text where it stands: no value ends the string that it stands in', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(fillJson('{"a": "<${parameters.a}>", "b": 2}', { a: text })).toEqual({ a: `<${text}>`, b: 2 })
        const alone = fillJson('{"a": ${parameters.a}, "b": 2}', { a: text })
        expect(Object.keys(alone)).toEqual(['a', 'b'])
      }),
    )
    const injected = { a: '1, "b": 3, "c": {"d": "}' }
    expect(fillJson('{"a": ${parameters.a}, "b": 2}', injected)).toEqual({ a: injected.a, b: 2 })
  })

  test('names what nothing fills, once each, unless it is lenient', () => {
    const template = '{"a": "${parameters.x} ${parameters.y} ${parameters.x}"}'
    expect(() => fillJson(template, {})).toThrow('Some parameter placeholder not filled in payload: x, y')
    expect(fillJson(template, { y: 1 }, true)).toEqual({ a: '${parameters.x} 1 ${parameters.x}' })
    expect(() => fillText('https://${parameters.host}', {})).toThrow('not filled in payload: host')
    expect(() => fillJson('{"a": "${credential.key}"}', { key: 'x' })).toThrow('not filled in payload: key')
  })

  test('stays short, however often a long value stands in it', () => {
    const value = { a: 'x'.repeat(100_000) }
    const often = '${parameters.a}'.repeat(100_000)
    expect(() => fillText(often, value)).toThrow('longer than 8000000 characters')
    expect(() => fillJson(`{"a": "${often}"}`, value)).toThrow('longer than 8000000 characters')
  })

  test('inherits nothing', () => {
    expect(() => fillText('${parameters.constructor}', {})).toThrow('constructor')
  })
})

describe('where a connector calls', () => {
  const env = { ALLOWED_HOSTS: '*, llm.example.com, 127.0.0.1:8080' }
  const connector = (url: string, parameters = {}, trusted?: string[]): Connector => ({
    protocol: 'http',
    url,
    method: 'POST',
    headers: {},
    parameters,
    credential: {},
    ...(trusted && { trusted }),
  })

  test.each([
    ['http://169.254.169.254/latest/meta-data'],
    ['https://other.example.com/v1'],
    ['https://llm.example.com@other.example.com/v1'],
    ['https://llm.example.com.other.example.com/v1'],
    ['https://llm.example.com:8443@127.0.0.1:9/'],
    ['http://[::1]:8080/'],
    ['http://0x7f.1:8081/'],
    ['file:///etc/passwd'],
  ])('is not %s, directly or by a parameter', (url) => {
    expect(() => urlOf(connector(url), {}, env)).toThrow(/trusted connector endpoint regex/)
    expect(() => urlOf(connector('${parameters.url}', { url }), {}, env)).toThrow(
      /trusted connector endpoint regex/,
    )
  })

  test('is not another host because a request says so', () => {
    const own = connector('https://${parameters.host}/v1/${parameters.path:-chat}', {
      host: 'llm.example.com',
    })
    expect(urlOf(own, { path: 'other' }, env)).toBe('https://llm.example.com/v1/other')
    for (const host of ['api.openai.com', 'llm.example.com@api.openai.com', 'api.openai.com/?'])
      expect(() => urlOf(own, { host }, env)).toThrow(/may not (?:change the host|carry a user name)/)
    const whole = connector('${parameters.url}', { url: 'https://llm.example.com/v1' })
    expect(urlOf(whole, { messages: [] }, env)).toBe('https://llm.example.com/v1')
    const open = connector('https://${parameters.host}/v1')
    expect(() => urlOf(open, { host: 'api.openai.com' }, env)).toThrow(/may not change the host/)
  })

  test('is what fits a pattern of the setting, as a whole, besides the rules of all calls', () => {
    const trusted = ['https://other\\.example\\.com/.*']
    expect(urlOf(connector('https://other.example.com/v1', {}, trusted), {}, env)).toContain(
      'other.example.com',
    )
    for (const url of [
      'https://llm.example.com/v1',
      'https://evil.example/?https://other.example.com/',
      'http://169.254.169.254/',
    ])
      expect(() => urlOf(connector(url, {}, [...trusted, 'http://169.*']), {}, env)).toThrow(
        /trusted connector/,
      )
  })
})
