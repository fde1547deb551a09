/** Thoughts in a model's text: told from its answer wherever the text is cut, for every provider. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { WIRES } from '../../bench/wires.mjs'
import { ThoughtFilter } from '../../src/models/reply'
import { ask, textOf } from './ask'
import { rawServer, sendJson } from './raw-server'

function sorted(pieces: string[], held = false): { text: string; thoughts: string } {
  const filter = new ThoughtFilter(held)
  const all = [...pieces.map((piece) => filter.push(piece)), filter.end()]
  return {
    text: all.map(({ text }) => text).join(''),
    thoughts: all.map(({ thoughts }) => thoughts).join(''),
  }
}

const cut = (text: string, places: number[]): string[] => {
  const at = [...new Set(places.map((place) => place % (text.length + 1)))].sort((a, b) => a - b)
  return [0, ...at].map((from, index) => text.slice(from, at[index] ?? text.length))
}

const noise = fc
  .array(
    fc.oneof(
      fc.constantFrom('<think>', '</think>', '<thinking>', '</Thinking>', '<', '</', 'think>', '<thin'),
      fc.constantFrom(
        '[THINK]',
        '[/THINK]',
        '[',
        '◁think▷',
        '◁/think▷',
        '◁',
        '<seed:think>',
        '</seed:think>',
      ),
      fc.constantFrom('<|channel|>analysis<|message|>', '<|end|>', '<|start|>assistant', '<|', '<thought>'),
      fc.constantFrom(
        '<|channel|>final to=x<|message|>',
        '<|channel|>',
        '<|message|>',
        '<answer>',
        '</answer>',
      ),
      fc.constantFrom('`', '``', '```', '\n```\n', '~~~', '\n', ' ', '\n\n', '<<Why?>>'),
      fc.string({ maxLength: 5 }),
    ),
    { maxLength: 25 },
  )
  .map((parts) => parts.join(''))

describe('whatever pieces a text comes in', () => {
  it('the same is answer, and the same is thought', () => {
    fc.assert(
      fc.property(noise, fc.array(fc.nat(), { maxLength: 20 }), fc.boolean(), (text, places, held) => {
        const whole = sorted([text], held)
        expect(sorted(cut(text, places), held)).toEqual(whole)
        expect(sorted(text.split(''), held)).toEqual(whole)
      }),
      { numRuns: 1_000 },
    )
  })

  it('no thought is in the answer, and no word of the answer is lost', () => {
    const answer = fc.constantFrom('Yes. ', 'So it is.\n', '1 < 2 ', 'a<b ', '`code` ', '日本語 ')
    const thought = fc.constantFrom(
      'secret',
      ' secret `',
      '<think>secret',
      'secret\n```\n',
      'secret < secret',
    )
    fc.assert(
      fc.property(
        fc.array(fc.tuple(thought, answer), { minLength: 1, maxLength: 6 }),
        fc.array(fc.nat(), { maxLength: 30 }),
        fc.boolean(),
        (parts, places, held) => {
          const text = parts.map(([thought, answer]) => `<think>${thought}</think>${answer}`).join('')
          expect(sorted(cut(text, places), held)).toEqual({
            text: parts.map(([, answer]) => answer).join(''),
            thoughts: parts.map(([thought]) => thought).join(''),
          })
        },
      ),
      { numRuns: 1_000 },
    )
  })

  it('a text without tags is the answer as it is', () => {
    fc.assert(
      fc.property(fc.string(), fc.array(fc.nat(), { maxLength: 9 }), fc.boolean(), (text, places, held) => {
        expect(sorted(cut(text, places), held)).toEqual({ text, thoughts: '' })
      }),
    )
  })
})

describe('a text', () => {
  it.each([
    ['<think>\nhm\n</think>\n\nYes.', 'Yes.'],
    ['\n <think>hm</think> <think>hm</think>\nYes.', 'Yes.'],
    ['<THINK>hm</Think>Yes.', 'Yes.'],
    ['<thinking>hm</thinking>Yes.', 'Yes.'],
    ['Yes. <think>hm</think>And no.', 'Yes. And no.'],
    ['<think>never closed', ''],
    ['Yes. <think>never closed', 'Yes. '],
    ['Yes. <thi', 'Yes. <thi'],
    ['Write `<think>` around it.', 'Write `<think>` around it.'],
    ['```xml\n<think>a</think>\n```\n<think>hm</think>Yes.', '```xml\n<think>a</think>\n```\nYes.'],
    ['it`s\n<think>hm</think>so', 'it`s\nso'],
    ['List<thing> <thinker>', 'List<thing> <thinker>'],
    ['  indented', '  indented'],
    ['so\n</think>\nYes.', 'so\n\nYes.'],
    ['<thought>hm</thought>Yes.', 'Yes.'],
    ['<seed:think>hm</think>hm</seed:think>\nYes.', 'Yes.'],
    ['[THINK]hm [1][/THINK]\n\nYes.', 'Yes.'],
    ['◁think▷hm◁/think▷Yes.', 'Yes.'],
    ['<|START_THINKING|>hm<|END_THINKING|>Yes.', 'Yes.'],
    [
      '<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Yes.<|return|>',
      'Yes.',
    ],
    [
      '<|start|>assistant<|channel|>analysis<|message|>hm<|start|>assistant<|channel|>commentary<|message|>hm<|end|>' +
        '<|channel|>final<|message|>Yes.',
      'Yes.',
    ],
    ['<|channel|>analysis<|message|>never closed', ''],
    [
      '<|channel|>commentary to=functions.find <|constrain|>json<|message|>{"a":1}<|call|><|start|>assistant<|channel|>final <|constrain|>markdown<|message|>Yes.',
      'Yes.',
    ],
    [
      '<|channel|>analysis<|message|>hm<|channel|>commentary<|message|>hm<|channel|>final<|message|>Yes.',
      'Yes.',
    ],
    ['<|channel|> has\nno message.', '<|channel|> has\nno message.'],
    ['<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Yes.<|END_RESPONSE|>', 'Yes.'],
    [
      '<think>hm</think>\n<answer>\nYes, in `<a>` and </response>.</answer>',
      'Yes, in `<a>` and </response>.',
    ],
    ['<think>hm</think>Write <answer>yes</answer>.', 'Write <answer>yes</answer>.'],
    ['<answer>yes</answer>', '<answer>yes</answer>'],
    ['<think>hm</think><|begin_of_box|>Yes.<|end_of_box|>', 'Yes.'],
    ['<|channel>thought\nhm<channel|>Yes.', 'Yes.'],
    ['<unused94>thought\nhm<unused95>Yes.', 'Yes.'],
    ['Yes.<|end|>', 'Yes.'],
    ['A [think](/link), [THINKING] and ◁.', 'A [think](/link), [THINKING] and ◁.'],
    ['Write `[THINK]` and `<|end|>`.', 'Write `[THINK]` and `<|end|>`.'],
  ])('%j answers %j', (text, answer) => {
    expect(sorted([text]).text).toBe(answer)
  })

  it.each([
    ['hm, so\n</think>\n\nYes.', 'Yes.'],
    ['it is ```\n</think>\nYes.', 'Yes.'],
    ['<think>hm</think>Yes.', 'Yes.'],
    ['hm [/THINK]Yes.', 'Yes.'],
    ['hm ◁/think▷Yes.', 'Yes.'],
    ['Yes.<|end|>', 'Yes.'],
    ['<|channel|>final<|message|>Yes.<|return|>', 'Yes.'],
    ['<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Yes.', 'Yes.'],
    ['Yes.', 'Yes.'],
    ['Thoughts end in `</think>` there.', 'Thoughts end in `</think>` there.'],
    ['', ''],
  ])('that may begin in thoughts, %j, answers %j', (text, answer) => {
    expect(sorted([text], true).text).toBe(answer)
  })

  it('is shown at once where it is no thought', () => {
    const filter = new ThoughtFilter(false)
    expect(['One', ' ', '<', 't', 'wo'].map((piece) => filter.push(piece).text)).toEqual([
      'One',
      ' ',
      '',
      '',
      '<two',
    ])
  })
})

const raw = rawServer()

const PROVIDERS: [string, string, () => Record<string, unknown>][] = [
  ['openai', 'openai', () => ({ model_name: 'openai/m', api_key: 'k', openai_url: raw.url })],
  ['vllm', 'openai', () => ({ model_name: 'vllm/m', vllm_url: raw.url })],
  ['azure', 'openai', () => ({ model_name: 'azure/m', api_key: 'k', url: `${raw.url}/chat` })],
  ['anthropic', 'anthropic', () => ({ model_name: 'anthropic/m', api_key: 'k', anthropic_url: raw.url })],
  ['google', 'google', () => ({ model_name: 'google/m', api_key: 'k', google_url: raw.url })],
  [
    'bedrock',
    'bedrock',
    () => ({ model_name: 'bedrock/m', api_key: 'k', region: 'eu-west-1', bedrock_url: raw.url }),
  ],
  [
    'cloudflare',
    'workers-ai',
    () => ({ model_name: 'cloudflare/@cf/m', api_key: 'k', account_id: 'a', cloudflare_url: raw.url }),
  ],
]

const streams = (name: string, pieces: string[]) => {
  const wire = WIRES[name]!
  raw.respond = (response) => {
    response.writeHead(200, { 'content-type': wire.type })
    for (const piece of [...wire.begin, ...pieces.map(wire.chunk), ...wire.end]) response.write(piece)
    response.end()
  }
}

describe.each(PROVIDERS)('%s', (_, wire, model) => {
  it('streams an answer without its thoughts', async () => {
    streams(wire, ['<th', 'ink>sec', 'ret</thi', 'nk>\n\nYes', '.'])
    const deltas = await ask(model())
    expect(textOf(deltas)).toBe('Yes.')
    const thoughts = deltas.map((delta) => (delta.type === 'reasoning' ? delta.text : '')).join('')
    expect(thoughts).toBe('secret')
  })

  it('that only thought has not answered', async () => {
    streams(wire, ['<think>', 'secret'])
    await expect(ask(model())).rejects.toThrow(/malformed response/)
  })

  it('that is known to begin in thoughts is shown from their end on', async () => {
    streams(wire, ['sec', 'ret</think>', 'Yes.'])
    expect(textOf(await ask({ ...model(), starts_thinking: true }))).toBe('Yes.')
  })
})

const completion = (message: object) => ({ choices: [{ message, finish_reason: 'stop' }] })
const openai = (name: string, more: object = {}) => ({
  model_name: `openai/${name}`,
  api_key: 'k',
  openai_url: raw.url,
  ...more,
})

describe('a whole reply', () => {
  it.each(['<think>secret</think>Yes.', 'secret</think>\nYes.'])('%j is its answer', async (content) => {
    raw.respond = (response) => sendJson(response, 200, completion({ content }))
    expect(textOf(await ask(openai('m'), { stream: false }))).toBe('Yes.')
  })
})

describe('a model whose name says that it begins in thoughts', () => {
  it.each(['deepseek-r1-distill', 'qwq-32b', 'Qwen3-30B-Thinking-2507'])('%s is known to', async (name) => {
    streams('openai', ['secret', '</think>', 'Yes.'])
    expect(textOf(await ask(openai(name)))).toBe('Yes.')
    streams('openai', ['<think>', 'secret', '</think>', 'Yes.'])
    expect(textOf(await ask(openai(name)))).toBe('Yes.')
    streams('openai', ['Yes', '.'])
    expect(textOf(await ask(openai(name)))).toBe('Yes.')
  })

  it('is not held back where its thoughts come apart, or where its owner knows better', async () => {
    const chunk = (delta: object) => `data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`
    raw.respond = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(chunk({ reasoning_content: 'secret' }))
      response.write(chunk({ content: 'Yes' }) + chunk({ content: '.' }))
      response.end('data: [DONE]\n\n')
    }
    const pieces = (deltas: Awaited<ReturnType<typeof ask>>) =>
      deltas.flatMap((delta) => (delta.type === 'text' ? [delta.text] : []))
    expect(pieces(await ask(openai('qwq-32b')))).toEqual(['Yes', '.'])
    streams('openai', ['Yes', '.'])
    expect(pieces(await ask(openai('qwq-32b', { starts_thinking: false })))).toEqual(['Yes', '.'])
  })
})
