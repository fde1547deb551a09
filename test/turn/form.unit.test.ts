import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { requireForm, requireSchema } from '../../src/turn/form'

const fits = (schema: Record<string, unknown>, text: string, finish: 'stop' | 'length' = 'stop') =>
  requireForm({ type: 'schema', name: 'answer', schema }, { text, finish }).then(
    () => true,
    () => false,
  )

describe('an answer of a form', () => {
  it('fits its schema, or is refused with the place of the fault', async () => {
    const schema = { type: 'object', properties: { n: { type: 'integer', minimum: 1 } }, required: ['n'] }
    expect(await fits(schema, '{"n": 2}')).toBe(true)
    expect(await fits(schema, '{"n": 0}')).toBe(false)
    expect(await fits(schema, '{}')).toBe(false)
    expect(await fits(schema, 'two')).toBe(false)
    await expect(
      requireForm({ type: 'schema', name: 'a', schema }, { text: '{"n": 0}', finish: 'stop' }),
    ).rejects.toMatchObject({ code: 'model_failed', message: expect.stringContaining('#/n') })
  })

  it('is not checked where the model was cut off', async () => {
    expect(await fits({ type: 'object' }, '{"n', 'length')).toBe(true)
  })

  it('is an object where any JSON will do', async () => {
    const any = (text: string) => requireForm({ type: 'json' }, { text, finish: 'stop' })
    await any('{"n": 1}')
    for (const text of ['[1]', '1', 'null', '{"n"']) await expect(any(text)).rejects.toThrow(/does not fit/)
  })

  it('fits whatever JSON it is, by the schema that says just that', async () => {
    const value = fc.jsonValue({ maxDepth: 4 })
    await fc.assert(
      fc.asyncProperty(value, async (given) => {
        expect(await fits({ const: given }, JSON.stringify(given))).toBe(true)
        expect(await fits({ not: { const: given } }, JSON.stringify(given))).toBe(false)
      }),
    )
  })

  it('is not held to a regular expression of a stranger', async () => {
    const schema = { type: 'string', pattern: '^(a+)+$', format: 'email' }
    expect(await fits(schema, `"${'a'.repeat(60)}!"`)).toBe(true)
    const named = { type: 'object', properties: { pattern: { type: 'integer' } } }
    expect(await fits(named, '{"pattern": "x"}')).toBe(false)
  })
})

describe('a keyword that is left to the provider', () => {
  it('does not make the rest of the schema refuse what the whole one takes', async () => {
    const either = {
      oneOf: [
        { type: 'string', pattern: '^a' },
        { type: 'string', pattern: '^b' },
      ],
    }
    expect(await fits(either, '"b"')).toBe(true)
    expect(await fits(either, '1')).toBe(false)
    expect(await fits({ type: 'string', not: { pattern: '^a' } }, '"b"')).toBe(true)
    const named = {
      type: 'object',
      patternProperties: { '^n': { type: 'integer' } },
      additionalProperties: false,
    }
    expect(await fits(named, '{"n1": 1}')).toBe(true)
  })

  it('may be a description, which changes nothing', async () => {
    const one = { description: 'd', oneOf: [{ type: 'number' }, { type: 'integer', title: 't' }] }
    expect(await fits(one, '1')).toBe(false)
    expect(await fits(one, '1.5')).toBe(true)
    expect(await fits({ not: { type: 'string', description: 'd' } }, '"x"')).toBe(false)
  })
})

describe('a schema', () => {
  it('may refer to itself below a property', async () => {
    const node = {
      type: 'object',
      properties: { name: { type: 'string' }, children: { type: 'array', items: { $ref: '#/$defs/node' } } },
      required: ['name'],
    }
    const schema = { $ref: '#/$defs/node', $defs: { node } }
    requireSchema(schema)
    expect(await fits(schema, '{"name": "a", "children": [{"name": "b"}]}')).toBe(true)
    expect(await fits(schema, '{"name": "a", "children": [{}]}')).toBe(false)
  })

  it('is refused where it goes in a circle, branches without end, or lacks what it names', () => {
    const circle = { $ref: '#/$defs/a', $defs: { a: { allOf: [{ $ref: '#/$defs/a' }] } } }
    expect(() => requireSchema(circle)).toThrow(/refers to itself/)
    const twice = { anyOf: [1, 2].map(() => ({ properties: { n: { $ref: '#' } } })) }
    expect(() => requireSchema(twice)).toThrow(/too many alternatives/)
    expect(() => requireSchema({ $ref: '#/$defs/none' })).toThrow(/has no/)
    expect(() => requireSchema({ $ref: 'other.json' })).toThrow(/has no/)
    expect(() => requireSchema({ $ref: '#/%' })).toThrow(/has no `#\/%`/)
    expect(() => requireSchema({ $ref: '#/const', const: { type: 'string' } })).toThrow(/has no/)
    expect(() => requireSchema({ $ref: '#/properties', properties: { type: {} } })).toThrow(/has no/)
    expect(() => requireSchema({ enum: ['x'.repeat(70_000)] })).toThrow(/longer than/)
  })
})
