import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { boundaryOf, readMultipart } from '../../../src/api/ai-chat/request'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const read = (text: string, boundary = 'b') =>
  readMultipart(bytes(text), boundary).map(({ bytes: content, ...part }) => ({
    ...part,
    text: new TextDecoder().decode(content),
  }))

describe('a boundary', () => {
  it.each([
    ['multipart/form-data; boundary=---Part-1', '---Part-1'],
    ['multipart/form-data;boundary="a b"', 'a b'],
    ['Multipart/Form-Data; charset=utf-8; BOUNDARY=x; y=z', 'x'],
  ])('stands in %s', (type, boundary) => expect(boundaryOf(type)).toBe(boundary))

  it.each([
    'multipart/form-data',
    'multipart/form-data; boundary=',
    `multipart/form-data; boundary=${'x'.repeat(201)}`,
  ])('is missed in %s', (type) => expect(() => boundaryOf(type)).toThrow('names no boundary'))
})

describe('a form', () => {
  it("is read as Microsoft's client writes it (case 43)", () => {
    const body =
      '-----Part-1\r\ncontent-type: application/json\r\ncontent-disposition: form-data; name=json\r\n\r\n{"messages":[]}\r\n' +
      '-----Part-1\r\ncontent-type: text/plain\r\ncontent-disposition: form-data; name="messages[0].files[0]"; filename="a.txt"\r\n\r\nA\r\n' +
      '-----Part-1--\r\n\r\n'
    expect(read(body, '---Part-1')).toEqual([
      { name: 'json', type: 'application/json', text: '{"messages":[]}' },
      { name: 'messages[0].files[0]', filename: 'a.txt', type: 'text/plain', text: 'A' },
    ])
  })

  it.each([
    ['a quoted name', 'Content-Disposition: form-data; name="json"', { name: 'json' }],
    ['a name that is not quoted', 'content-disposition:form-data;name=json', { name: 'json' }],
    [
      'quotes in a file name',
      'Content-Disposition: form-data; name="f"; filename="a \\"b\\".txt"',
      { name: 'f', filename: 'a "b".txt' },
    ],
    [
      "a browser's quotes",
      'Content-Disposition: form-data; name="f"; filename="a %22b%22.txt"',
      { name: 'f', filename: 'a "b".txt' },
    ],
    [
      'a file name before the name',
      'Content-Disposition: form-data; filename="name=x"; name=f',
      { name: 'f', filename: 'name=x' },
    ],
    [
      'letters beyond ASCII',
      'Content-Disposition: form-data; name="f"; filename="Größe.txt"',
      { name: 'f', filename: 'Größe.txt' },
    ],
  ])('may have %s', (_, header, part) => {
    expect(read(`--b\r\n${header}\r\n\r\nx\r\n--b--`)).toEqual([{ ...part, type: '', text: 'x' }])
  })

  it('keeps every byte between its lines, what looks like a boundary included', () => {
    const content = '\r\n--bb\r\n--\r\n b--b--\r\n\n--b-\r\n'
    expect(
      read(`preamble\r\n--b\r\nContent-Disposition: form-data; name=f\r\n\r\n${content}\r\n--b--`),
    ).toEqual([{ name: 'f', type: '', text: content }])
  })

  it('may end its lines with a line feed alone, and be empty', () => {
    expect(read('--b\ncontent-disposition: form-data; name=f\n\nx\n--b--\n')).toMatchObject([{ text: 'x' }])
    expect(read('--b\r\ncontent-disposition: form-data; name=f\r\n\r\n\r\n--b--')).toMatchObject([
      { text: '' },
    ])
    expect(read('--b--')).toEqual([])
  })

  it.each([
    ['', 'its boundary is nowhere in it'],
    ['--c\r\n', 'its boundary is nowhere in it'],
    ['--b\r\ncontent-disposition: form-data; name=f\r\n\r\nx', 'it ends before its last boundary'],
    ['--b\r\ncontent-disposition: form-data; name=f\r\n', 'it ends before its last boundary'],
    ['--b\r\n', 'it ends before its last boundary'],
    ['--b\r\ncontent-type: text/plain\r\n\r\nx\r\n--b--', 'a part of it has no name'],
    [`--b\r\nx: ${'y'.repeat(17_000)}\r\n\r\nx\r\n--b--`, 'the headers of a part are too long'],
    [
      `${'--b\r\ncontent-disposition: form-data; name=f\r\n\r\nx\r\n'.repeat(101)}--b--`,
      'it has more than 100 parts',
    ],
  ])('is refused: %#', (body, why) => expect(() => read(body)).toThrow(why))

  const name = fc.stringMatching(/^[a-z0-9[\].]{1,20}$/)

  it('comes back as it was written, whatever its parts hold', { timeout: 30_000 }, () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(name, fc.uint8Array({ maxLength: 60 })), { minLength: 1, maxLength: 5 }),
        (parts) => {
          const boundary = '---Part-7'
          const pieces = parts.flatMap(([each, content]) => [
            bytes(`--${boundary}\r\nContent-Disposition: form-data; name="${each}"\r\n\r\n`),
            content,
            bytes('\r\n'),
          ])
          const body = Uint8Array.from(
            [...pieces, bytes(`--${boundary}--\r\n`)].flatMap((piece) => [...piece]),
          )
          const back = readMultipart(body, boundary)
          expect(back.map((part) => [part.name, [...part.bytes]])).toEqual(
            parts.map(([each, content]) => [each, [...content]]),
          )
        },
      ),
    )
  })

  it('is read or refused, and never anything else, whatever it holds', () => {
    const fragment = fc.constantFrom(
      '--b',
      '\r\n',
      '\n',
      '--',
      'content-disposition: form-data; name=f',
      'x',
      '"',
      ';',
      ' ',
    )
    fc.assert(
      fc.property(fc.array(fragment, { maxLength: 30 }), (fragments) => {
        try {
          for (const part of readMultipart(bytes(fragments.join('')), 'b')) expect(part.name).toBe('f')
        } catch (error) {
          expect(error).toMatchObject({ status: 400, message: expect.stringContaining('malformed') })
        }
      }),
    )
  })
})
