/** A result of a cluster's /multi_search, passed on as text. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { resultText } from '../../src/engines/typesense/store'

const ENDS = { search_cutoff: false, search_time_ms: 3 }
const reply = (result: unknown): string => JSON.stringify({ results: [result] })

const named = fc.record({ collection_name: fc.string(), q: fc.string(), per_page: fc.integer() })
/** Documents that look like the reply itself. */
const tricky = fc.oneof(
  fc.jsonValue(),
  fc.record({ request_params: named }),
  fc.record({ text: fc.constantFrom('"request_params":{"collection_name":"there"}', ']}', '{"results":[{') }),
)

describe('a result as text', () => {
  it('says what the cluster said, under the name here', () => {
    fc.assert(
      fc.property(fc.array(tricky), named, fc.string(), fc.boolean(), (documents, asked, name, last) => {
        const found = { found: documents.length, hits: documents.map((document) => ({ document })) }
        const result = last
          ? { ...found, request_params: asked, ...ENDS }
          : { request_params: asked, ...ENDS, ...found }
        const text = resultText(reply(result), name)
        // A reply in another order may have to be read whole, but is never taken for something else.
        if (text === undefined) expect(last).toBe(false)
        else
          expect(JSON.parse(text)).toEqual(
            JSON.parse(JSON.stringify({ ...result, request_params: { ...asked, collection_name: name } })),
          )
      }),
    )
  })

  it('keeps all digits', () => {
    const hits = '"hits":[{"document":{"id":"1","at":1712345678901234567},"text_match":578730123365711993}]'
    const end = '"request_params":{"collection_name":"there","q":"a"},"search_time_ms":0}'
    expect(resultText(`{"results":[{${hits},${end}]}`, 'here')).toBe(
      `{${hits},${end.replace('there', 'here')}`,
    )
  })

  it.each([
    reply({ code: 404, error: 'Not found.' }),
    reply({ code: 400, error: 'x', hits: [{ document: { request_params: { collection_name: 'there' } } }] }),
    reply({ request_params: 'none' }),
    '{"results":[]}',
    '{"results":[{"request_params":{}}',
    'no JSON',
    '',
  ])('leaves %s to be read whole', (text) => {
    expect(resultText(text, 'here')).toBeUndefined()
  })
})
