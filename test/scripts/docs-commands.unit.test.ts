/** Commands of the documentation as requests: each block that has "Run" is the request that curl sends. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { written } from '../../scripts/docs/pages.mjs'
import { referencePages } from '../../scripts/docs/reference.mjs'
import { coloured, effectOf, filled, idsIn, openIn, requestsIn } from '../../ui/docs/src/command'
import { type Served, serve } from '../serve'

const writtenPages = written().map((name) => ({ name, markdown: readFileSync(`docs/${name}.md`, 'utf8') }))
const blocksOf = (pages: { name: string; markdown: string }[]) =>
  pages.flatMap(({ name, markdown }) =>
    [...markdown.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block = '']) => ({ name, block })),
  )

const request = (block: string) => requestsIn(block)?.[0]

describe('a command', () => {
  test('is read as a shell and curl read it', () => {
    expect(request(`curl -X PUT localhost:8108/a?b=1 -H 'X: y' -d '{"a": "it'\\''s"}'`)).toEqual({
      method: 'PUT',
      path: '/a?b=1',
      headers: { x: 'y', 'content-type': 'application/x-www-form-urlencoded' },
      body: '{"a": "it\'s"}',
    })
    expect(request('# First.\ncurl -sS "http://localhost:8108/x#y" \\\n  -u admin:xyz')).toEqual({
      method: 'GET',
      path: '/x',
      headers: { authorization: 'Basic YWRtaW46eHl6' },
    })
    const both = 'curl localhost:8108/a -d \\"\n\ncurl localhost:8108/b -d "\\"\\$"\n'
    expect(requestsIn(both)?.map(({ path, body }) => [path, body])).toEqual([
      ['/a', '"'],
      ['/b', '"$'],
    ])
    expect(requestsIn('curl https://parley.example/a', 'https://parley.example')).toHaveLength(1)
  })

  test.each([
    'npm start',
    'curl localhost:8108/a\nnpm start',
    'curl https://api.cloudflare.com/a',
    'curl http://localhost:8108.example/a',
    'curl http://xyz@localhost:8108/a',
    'curl localhost:8108/a -d @schema.json',
    'curl localhost:8108/a --data-binary @documents.jsonl',
    'curl localhost:8108/a -H "X: $KEY"',
    'curl localhost:8108/a > file',
    'curl localhost:8108/a | jq .',
    'curl localhost:8108/a?b=1&c=2',
    "curl localhost:8108/a -d '{",
    'curl localhost:8108/a -o file',
    'curl localhost:8108/a localhost:8108/b',
    "curl -X GET localhost:8108/a -d '{}'",
    '',
  ])('that a page cannot send is none: %s', (block) => {
    expect(requestsIn(block)).toBeUndefined()
  })
})

describe('the blocks of the documentation', () => {
  let server: Served
  let arrived: unknown[] = []

  beforeAll(async () => {
    server = await serve(async (incoming, response) => {
      const { method, url, headers } = incoming
      arrived.push({ method, path: url, headers, body: await text(incoming) })
      response.end()
    })
  })
  afterAll(() => server.stop())

  test('that need nothing of a shell, a file or another server can all be run', () => {
    const left = blocksOf([...writtenPages, ...referencePages()]).filter(
      ({ block }) => block.includes('curl ') && requestsIn(block) === undefined,
    )
    const needs = /^(npm|npx|export) | @\w+\.json|\$[A-Z]|https:\/\/api\.cloudflare\.com/m
    expect(left.filter(({ block }) => !needs.test(block))).toEqual([])
  })

  test('are the requests that curl sends', async () => {
    const runnable = blocksOf(writtenPages).filter(({ block }) => requestsIn(block))
    expect(runnable.length).toBeGreaterThan(25)
    for (const { block } of runnable) {
      arrived = []
      const told = block.replaceAll(/(?:http:\/\/)?localhost:8108/g, server.url)
      await promisify(execFile)('bash', ['-ec', told])
      const expected = requestsIn(block)?.map(({ headers, body = '', ...rest }) => ({
        ...rest,
        headers: expect.objectContaining(headers),
        body,
      }))
      expect(arrived).toEqual(expected)
    }
  })
})

test('says what a request changes, and nothing of one that reads or asks', () => {
  const said = (line: string, body?: unknown) => {
    const [method = '', path = ''] = line.split(' ')
    return effectOf({ method, path, headers: {}, ...(body !== undefined && { body: JSON.stringify(body) }) })
  }
  expect(said('DELETE /collections/articles')).toBe('This deletes the collection articles on this server.')
  expect(said('POST /collections', { name: 'books' })).toBe('This makes the collection books on this server.')
  expect(said('POST /keys', { description: 'search' })).toBe('This makes a key on this server.')
  expect(said('PUT /conversations/models/m')).toBe(
    'This makes or replaces the conversation model m on this server.',
  )
  expect(said('DELETE /collections/a/documents?filter_by=x:1')).toBe(
    'This deletes the documents of the collection a that the filter names on this server.',
  )
  expect(said('DELETE /users/a%20b/conversations')).toBe(
    'This deletes all conversations of the user a b on this server.',
  )
  expect(said('DELETE /_search/pipeline/p')).toBe('This deletes /_search/pipeline/p on this server.')
  expect(said('POST /sources/site/run')).toBe(
    'This sends POST /sources/site/run, which can change what is on this server.',
  )
  for (const line of ['GET /keys', 'POST /conversations', 'POST /multi_search?q=a', 'POST /books/_search'])
    expect([line, said(line)]).toEqual([line, undefined])
})

test('finds the ids of a reply, and puts them where later commands name them', () => {
  const to = (line: string) => {
    const [method = '', path = ''] = line.split(' ')
    return { method, path, headers: {} }
  }
  const ids = new Map([
    ...idsIn(to('POST /keys'), '{"id": 7, "value": "secret"}', null),
    ...idsIn(
      to('POST /conversations'),
      'event: start\ndata: {"conversation_id":"c1","question":"?"}\n',
      null,
    ),
    ...idsIn(to('POST /v1/conversations'), '{"id": "conv_2"}', null),
  ])
  expect([...ids]).toEqual([
    ['KEY_ID', '7'],
    ['CONVERSATION', 'c1'],
    ['CONVERSED', 'conv_2'],
  ])
  expect(idsIn(to('POST /multi_search?q=a'), '{"conversation": {"conversation_id": "c3"}}', null)).toEqual([
    ['CONVERSATION', 'c3'],
  ])
  expect(idsIn(to('POST /v1/chat/completions'), '{"id": "x"}', 'c4')).toEqual([['CONVERSATION', 'c4']])
  expect(idsIn(to('DELETE /keys/7'), 'null', null)).toEqual([])
  expect(
    filled('/keys/KEY_ID /x/CONVERSATION.1/msg_CONVERSED.1.q OPENAI_API_KEY KEY MY_CONVERSATIONS', ids),
  ).toBe('/keys/7 /x/c1.1/msg_conv_2.1.q OPENAI_API_KEY KEY MY_CONVERSATIONS')
})

test('knows what a reader has to put into a command first', () => {
  const [request] =
    requestsIn(
      `curl localhost:8108/a/CONVERSATION -H 'X-KEY: xyz' -d '{"api_key": "OPENAI_API_KEY", "key": "sk-..."}'`,
    ) ?? []
  expect(request && openIn(request)).toEqual(['CONVERSATION', 'OPENAI_API_KEY', 'sk-...'])
})

test('colours JSON, and leaves any other reply as it is', () => {
  const pieces = coloured('{"a":"b\\"c","n":-1.5,"t":[true,null]}')
  expect(pieces.map(({ text: piece }) => piece).join('')).toBe(
    JSON.stringify({ a: 'b"c', n: -1.5, t: [true, null] }, undefined, 2),
  )
  expect(pieces.filter(({ kind }) => kind).map(({ text: piece, kind }) => `${kind} ${piece}`)).toEqual([
    't-keyword "a":',
    't-string-expression "b\\"c"',
    't-keyword "n":',
    't-constant -1.5',
    't-keyword "t":',
    't-constant true',
    't-constant null',
  ])
  expect(coloured('data: {}')).toEqual([{ text: 'data: {}' }])
})
