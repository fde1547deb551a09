/** Texts and pictures with a question on Parley's own routes, inside workerd. */
import { parse } from 'valibot'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import * as schemas from '../../../src/api/parley/response-schemas'
import { call } from '../typesense/api'
import { ask, MODEL, makeKey, setStage } from './stage'

const QUESTION = 'Who is called Kane?'
const NOTE = { name: 'note.txt', type: 'text/plain', text: 'The guest is called Kane.' }
const PICTURE = { name: 'cat.png', type: 'image/png', data: 'iVBORw0KGgo=' }
const VISITOR = { 'x-parley-visitor': 'a-visitor-of-a-page-0123456789-abcdefghij' }
const keys: Record<string, string> = {}

beforeAll(async () => {
  await setStage()
  for (const [name, attachments] of Object.entries({ open: true, closed: false, silent: undefined })) {
    const body = { model: 'm', collections: ['facts'], ...(attachments !== undefined && { attachments }) }
    expect((await call('PUT', `/assistants/${name}`, { body }))[0]).toBe(200)
    keys[name] = await makeKey({ actions: ['documents:search'], limits: { assistant: name } })
  }
})

const bring = (files: unknown, name = 'open', more: Record<string, unknown> = {}) =>
  call('POST', `/a/${name}/conversations`, {
    key: keys[name]!,
    headers: VISITOR,
    body: { question: QUESTION, files, ...more },
  })

describe('a question with files', () => {
  it('is answered from them by an assistant that allows them', async () => {
    const [status, { answer }] = await bring([NOTE])
    expect(status).toBe(200)
    expect(answer).toContain('The guest is called Kane.')
  })

  it('is answered from them without an assistant', async () => {
    const [status, { answer }] = await ask({ question: QUESTION, files: [NOTE] })
    expect(status).toBe(200)
    expect(answer).toContain('The guest is called Kane.')
  })

  it('leaves no file in its conversation', async () => {
    const text = `${NOTE.text}\n\nSomething else altogether: 7d1f0c.`
    const [, { conversation_id: id, answer }] = await bring([{ ...NOTE, text }])
    expect(answer).toContain('Kane')
    const [, conversation] = await call('GET', `/conversations/${id}`)
    // The model's answer may quote a file: that is the answer's, and is kept.
    const rest = JSON.stringify(conversation).replaceAll(JSON.stringify(answer).slice(1, -1), '')
    expect(rest).not.toContain('7d1f0c')
  })

  it('brings pictures to a language model, which the conversation does not keep', async () => {
    const asked: { content: unknown }[] = []
    vi.spyOn(globalThis, 'fetch').mockImplementation(async (_, init) => {
      asked.push(JSON.parse(String(init?.body)).messages?.at(-1))
      const message = { role: 'assistant', content: 'A cat.' }
      return Response.json({ choices: [{ message, finish_reason: 'stop' }], usage: {} })
    })
    const model = { ...MODEL, model_name: 'openai/gpt-4o', api_key: 'sk-x' }
    const seeing = { model: 'sees', collections: ['facts'], attachments: true }
    expect((await call('POST', '/conversations/models', { body: { ...model, id: 'sees' } }))[0]).toBe(201)
    expect((await call('PUT', '/assistants/sees', { body: seeing }))[0]).toBe(200)
    keys.sees = await makeKey({ actions: ['documents:search'], limits: { assistant: 'sees' } })
    const [, front] = await call('GET', '/a/sees', { key: keys.sees })
    expect(front.attachments.pictures).toBe(1_400_000)
    expect((await call('GET', '/a/open', { key: keys.open! }))[1].attachments.pictures).toBeUndefined()
    const [status, answered] = await bring([PICTURE, NOTE], 'sees')
    expect([status, answered.answer]).toEqual([200, 'A cat.'])
    expect(asked.at(-1)!.content).toMatchObject([
      { type: 'text', text: expect.stringContaining('The guest is called Kane.') },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
    ])
    const [, conversation] = await call('GET', `/conversations/${answered.conversation_id}/trace`)
    expect(JSON.stringify(conversation)).not.toContain('iVBORw0KGgo')
    // A guardrail judges texts alone.
    const guarded = { ...model, id: 'guarded', input_guardrail_prompt: 'Nothing rude.' }
    expect((await call('POST', '/conversations/models', { body: guarded }))[0]).toBe(201)
    expect((await ask({ model: 'guarded', files: [PICTURE] }))[0]).toBe(400)
    vi.restoreAllMocks()
  })

  it('is told what is wrong with a picture', async () => {
    const says = async (file: unknown) => (await bring([file]))[1].message
    expect(await says(PICTURE)).toMatch(/^This model takes no pictures: the built-in one reads none/)
    expect(await says({ ...PICTURE, type: 'image/svg+xml' })).toMatch(
      /^`files.0.type`: Expected one of image\/png/,
    )
    expect(await says({ ...PICTURE, data: 'no base64!' })).toMatch(/^`files.0.data`: Expected base64/)
    expect(await says({ ...PICTURE, text: 'and a text' })).toBe('`files.0`: Give either `text` or `data`.')
    expect(await says({ name: 'empty.txt' })).toBe('`files.0`: Give either `text` or `data`.')
  })

  it.each(['closed', 'silent'])('is refused by an assistant that does not allow them: %s', async (name) => {
    const message = `\`files\`: The assistant \`${name}\` takes no files: it has no \`attachments\`.`
    expect(await bring([NOTE], name)).toEqual([400, { message, code: 'bad_request' }])
    expect((await bring([], name))[0]).toBe(200)
  })

  it('is refused on the AI Chat Protocol too where the assistant says no', async () => {
    const part = (name: string, type: string, content: string) =>
      `--b\r\ncontent-type: ${type}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${content}\r\n`
    const json = JSON.stringify({ messages: [{ role: 'user', content: QUESTION }] })
    const body = `${part('json', 'application/json', json)}${part('messages[0].files[0]', 'text/plain', NOTE.text)}--b--\r\n`
    const submit = (name: string) =>
      call('POST', `/a/${name}/chat`, {
        key: keys[name]!,
        headers: { 'content-type': 'multipart/form-data; boundary=b' },
        body,
      })
    expect((await submit('silent'))[0]).toBe(200)
    const [status, refused] = await submit('closed')
    expect([status, JSON.stringify(refused)]).toEqual([400, expect.stringContaining('takes no files')])
  })

  it.each([
    ['a picture', [{ name: 'a.png', type: 'image/png', text: 'x' }], '`files.0`: `a.png` (image/png) is not'],
    ['too many', Array(11).fill(NOTE), '`files`: '],
    ['too long', [{ ...NOTE, text: 'x'.repeat(9_000) }], 'it takes 8192 bytes of them.'],
    ['no name', [{ text: 'x' }], '`files.0.name`'],
    ['another property', [{ ...NOTE, url: 'https://x.example' }], '`files.0.url`'],
  ])('is refused with %s', async (_, files, message) => {
    const [status, body] = await bring(files)
    expect([status, body.message]).toEqual([400, expect.stringContaining(message)])
    expect((await ask({ question: QUESTION, files }))[0]).toBe(400)
  })

  it('tells a page the limits before it asks', async () => {
    const [, front] = await call('GET', '/a/open', { key: keys.open! })
    expect(parse(schemas.AssistantFront, front).attachments).toEqual({ files: 10, bytes: 8_192 })
    expect((await call('GET', '/a/silent', { key: keys.silent! }))[1]).not.toHaveProperty('attachments')
  })
})
