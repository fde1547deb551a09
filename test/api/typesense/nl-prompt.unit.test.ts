/** What a model is told of a collection, and what is taken of whatever it replies. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { promptOf, readReply, type Told, toldFields } from '../../../src/api/typesense/nl'
import { ApiError } from '../../../src/errors'
import { parseFilter } from '../../../src/search/filter/parse'
import { parseSchema } from '../../../src/search/schema/schema'

const { fields } = parseSchema({
  name: 'shirts',
  enable_nested_fields: true,
  fields: [
    { name: 'name', type: 'string' },
    { name: 'color', type: 'string', facet: true },
    { name: 'price', type: 'float' },
    { name: 'note', type: 'string', index: false, optional: true },
    { name: 'maker', type: 'object' },
    { name: 'maker.town', type: 'string' },
    { name: 'vector', type: 'float[]', num_dim: 4 },
    { name: '.*_tag', type: 'string' },
  ],
})

const namesOf = (told: Told[]): string[] => told.map(({ name }) => name)
const told = toldFields(fields, '', '')
const bytes = (text: string): number => new TextEncoder().encode(text).length

describe('a model is told', () => {
  it('the fields that can be filtered by and that the caller sees', () => {
    expect(namesOf(told)).toEqual(['name', 'color', 'price', 'maker.town'])
    expect(namesOf(toldFields(fields, '', 'price, maker'))).toEqual(['name', 'color'])
    expect(namesOf(toldFields(fields, '', 'p*'))).toEqual(['name', 'color', 'maker.town'])
    expect(namesOf(toldFields(fields, 'name,maker', ''))).toEqual(['name', 'maker.town'])
  })

  it('as much as `max_bytes` has room for: fewer values first, then fewer fields', () => {
    const many = Array.from({ length: 40 }, (_, n) => ({
      ...told[1]!,
      name: `field_${n}`,
      values: Array.from({ length: 10 }, (__, value) => `a rather long value ${value}`),
    }))
    const whole = promptOf(many, 'Prices are in euros.', 1_000_000)
    expect(whole).toContain('a rather long value 9')
    expect(whole.endsWith('Prices are in euros.')).toBe(true)
    const most = fc.integer({ min: 1_700, max: 20_000 })
    fc.assert(
      fc.property(most, (limit) => {
        const prompt = promptOf(many, undefined, limit)
        expect(bytes(prompt)).toBeLessThanOrEqual(limit)
        expect(prompt).toContain('field_0')
      }),
    )
    expect(promptOf(many, undefined, 6_000)).toContain('field_39')
    expect(() => promptOf(many, undefined, 100)).toThrow('`max_bytes` of the model is too small')
  })
})

describe('of a reply is taken', () => {
  it('what is a search, wherever it stands in it', () => {
    expect(readReply('{"q":" red ","filter_by":"","sort_by":null,"per_page":250}', told)).toEqual({
      params: { q: 'red' },
    })
    expect(readReply('Sure:\n{"sort_by":"price:asc"} That is it.', told)).toEqual({
      params: { sort_by: 'price:asc' },
      method: 'regex',
    })
  })

  it('nothing that is not, whatever a model writes', () => {
    const text = fc.string({ unit: 'binary' })
    const piece = fc.constantFrom(
      'color',
      'price',
      ':',
      '=',
      '(',
      ')',
      '&&',
      '||',
      '{',
      '}',
      '[',
      '`',
      '"',
      '.',
      '$x',
    )
    const filter = fc.oneof(
      text,
      fc.array(piece).map((pieces) => pieces.join('')),
    )
    const reply = fc.oneof(
      text,
      fc
        .record({ q: text, filter_by: filter, sort_by: filter }, { requiredKeys: [] })
        .map((given) => JSON.stringify(given)),
    )
    fc.assert(
      fc.property(reply, (written) => {
        try {
          const { params } = readReply(written, told)
          // Each filter stands alone, so that none opens or closes another one's parentheses.
          if (params.filter_by !== undefined) expect(parseFilter(params.filter_by)).toBeDefined()
          expect(Object.keys(params).every((name) => ['q', 'filter_by', 'sort_by'].includes(name))).toBe(true)
        } catch (error) {
          if (!(error instanceof ApiError)) throw error
        }
      }),
      { numRuns: 1_000 },
    )
  })

  it('nothing that joins another collection', () => {
    for (const join of ['$owners(id:*)', '!$owners(id:*)', 'color:Red && ($owners(id:*) || price:>1)']) {
      expect(() => readReply(JSON.stringify({ filter_by: join }), told), join).toThrow('is not usable')
    }
    expect(() => readReply('{"sort_by":"$owners(id:asc)"}', told)).toThrow(ApiError)
  })
})
