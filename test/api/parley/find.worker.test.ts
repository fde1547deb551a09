/** What a page finds while its visitor types: `GET /a/NAME/search`. */
import { beforeAll, describe, expect, it } from 'vitest'
import { call } from '../typesense/api'
import { makeKey, setStage } from './stage'

const PAGES = [
  {
    id: 'start',
    title: 'Getting started',
    url: 'https://docs.example.com/start',
    text: `Install the package first. ${'Then read on. '.repeat(40)}The server listens on port 8108.`,
    secret: 'portcullis',
  },
  {
    id: 'ports',
    title: 'Ports and hosts',
    url: 'javascript:alert(1)',
    text: 'Which <b> ports </b> are open.',
    secret: '',
  },
  {
    id: 'keys',
    title: 'Keys',
    url: 'https://docs.example.com/keys',
    text: 'Make a key for a page.',
    secret: '',
  },
]

let key: string

const find = (query: string, name = 'help') => call('GET', `/a/${name}/search?${query}`, { key })

beforeAll(async () => {
  await setStage()
  const fields = ['title', 'text', 'url', 'secret'].map((name) => ({ name, type: 'string' }))
  await call('POST', '/collections', { body: { name: 'pages', fields } })
  for (const body of PAGES) await call('POST', '/collections/pages/documents', { body })
  const search = { collection: 'pages', query_by: 'title,text', exclude_fields: 'secret' }
  const body = { model: 'm', searches: [search], search: true }
  expect((await call('PUT', '/assistants/help', { body }))[0]).toBe(200)
  const both = { model: 'm', collections: ['pages', 'facts'], search: true }
  expect((await call('PUT', '/assistants/both', { body: both }))[0]).toBe(200)
  key = await makeKey({ actions: ['documents:search'], limits: { assistant: 'help' } })
})

describe('a search while typing', () => {
  it('finds words as far as they are typed, and shows the part that matches', async () => {
    const [status, { hits }] = await find('q=how+por')
    expect(status).toBe(200)
    const start = hits.find(({ document_id }: { document_id: string }) => document_id === 'start')
    expect(start).toMatchObject({ collection: 'pages', title: 'Getting started', url: PAGES[0]!.url })
    expect(start.snippet).toContainEqual({ text: 'por', mark: true })
    const snippet = start.snippet.map(({ text }: { text: string }) => text).join('')
    expect(PAGES[0]!.text).toContain(snippet)
    expect(snippet.length).toBeLessThan(200)
  })

  it('shows nothing that the assistant leaves out, and no address that is not safe', async () => {
    const [, { hits }] = await find('q=ports')
    expect(hits[0]).toEqual({
      collection: 'pages',
      document_id: 'ports',
      title: 'Ports and hosts',
      snippet: [{ text: 'Which <b> ' }, { text: 'ports', mark: true }, { text: ' </b> are open.' }],
    })
    expect(JSON.stringify(await find('q=portcullis'))).not.toMatch(/portcullis|secret/)
  })

  it('finds in all collections, as many as are asked for', async () => {
    const [, { hits }] = await call('GET', '/a/both/search?q=a&limit=2')
    expect(hits).toHaveLength(2)
    const [, all] = await call('GET', '/a/both/search?q=page+Paris&limit=20')
    expect(new Set(all.hits.map(({ collection }: { collection: string }) => collection))).toContain('facts')
  })

  it('says what is wrong with a request', async () => {
    expect(await find('limit=3')).toMatchObject([400, { message: '`q`: It is missing.' }])
    expect(await find('q=a&limit=21')).toMatchObject([400, { message: expect.stringMatching(/^`limit`: /) }])
    expect(await find('q=a', 'both')).toMatchObject([404, { code: 'unknown_assistant' }])
    const closed = { model: 'm', collections: ['pages'] }
    expect((await call('PUT', '/assistants/closed', { body: closed }))[0]).toBe(200)
    const [code, { message }] = await call('GET', '/a/closed/search?q=a')
    expect([code, message]).toEqual([
      400,
      'The assistant `closed` takes no searches: give it `"search": true`.',
    ])
    expect(await find(`q=${'a'.repeat(501)}`)).toMatchObject([400, {}])
  })
})
