/** What of the widget needs no browser: the marks of citations, unfinished Markdown, and what the script weighs. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BUDGET_KB, bundleWidget, gzipKb, integrityOf, VERSIONED } from '../../scripts/widget.mjs'
import { placesIn, saysOf } from '../../ui/widget/src/evidence'
import grammars from '../../ui/widget/src/grammars.json'
import { grammarOf, lex } from '../../ui/widget/src/lexer'
import { mend } from '../../ui/widget/src/mend'
import {
  lastSentence,
  markAnswer,
  passageOf,
  type Source,
  shownPart,
  sourcesCited,
  sourcesOf,
  withMarks,
  withoutMarks,
} from '../../ui/widget/src/sources'
import { ENGLISH } from '../../ui/widget/src/words'

const source = (number: number, id: string, text = ''): Source => ({
  number,
  collection: 'docs',
  documentId: id,
  title: id,
  label: `${id}.txt`,
  texts: text === '' ? [] : [text],
})
const SOURCES = [source(1, 'keys'), source(2, 'plan[a]'), source(3, 'widget')]

/** Marks as a reader would write them. */
const readable = (text: string): string =>
  text.replace(/\ue000(\d+)(?::\d+)?\ue001/g, (_, number) => `^${number}`)

const cite = (answer: string, sentence: string, id: string) => {
  const start = answer.indexOf(sentence)
  return { collection: 'docs', document_id: id, start, end: start + sentence.length }
}

describe('what sources say of sentences', () => {
  const ANSWER =
    'It is **free** [keys.txt]. Call `a.b()` or see [the guide](https://a.b/c) soon [keys.txt, widget.txt].\n\n1. It is free for 30 days.'
  const SENTENCES = ['It is **free** [keys.txt].', 'Call', '1. It is free for 30 days.']
  const support = SENTENCES.map((text, index) => {
    const start = ANSWER.indexOf(text)
    const end = index === 1 ? ANSWER.indexOf('\n') : start + text.length
    return { start, end, support: 'not_found' as const }
  })
  const LETTERS = 'ItisfreeCallaborseetheguidesoonItisfreefor30days'
  const found = (letters: string) =>
    placesIn(letters, ANSWER, support, SOURCES).map(({ from, to }) => letters.slice(from, to))

  test('is found on the page by letters, whatever Markdown makes of them', () => {
    expect(found(LETTERS)).toEqual(['Itisfree', 'Callaborseetheguidesoon', 'Itisfreefor30days'])
  })

  test('is left out where the page shows something else, and never said of another sentence', () => {
    expect(found(LETTERS.replace('soon', 'later'))).toEqual(['Itisfree', 'Itisfreefor30days'])
    expect(found('')).toEqual([])
  })

  test('is said in words, with what they lack', () => {
    const says = (each: Parameters<typeof saysOf>[0]) => saysOf(each, ENGLISH)
    const place = { start: 0, end: 1 }
    expect(says({ ...place, support: 'supported' })).toEqual([ENGLISH.supported])
    expect(says({ ...place, support: 'partly', missing: ['300', '$&'] })).toEqual([
      ENGLISH.partly,
      'Not in the sources: 300, $&',
    ])
  })
})

describe('citations', () => {
  test('leaves no full stop alone behind a label', () => {
    const shown = (answer: string) => readable(withMarks(answer, SOURCES))
    const ended = 'A. [keys.txt]. **B.** [keys.txt] [widget.txt]. C? [keys.txt].'
    expect(shown(ended)).toBe(shown('A. [keys.txt] **B.** [keys.txt] [widget.txt] C? [keys.txt]'))
    expect(withoutMarks('A. [keys.txt]. B [keys.txt].', SOURCES)).toBe('A. B.')
    expect(shown('A. [keys.txt]... B')).toContain('... B')
    expect(shown('A [keys.txt]. B')).toContain('. B')
    expect(shown('A. [other.txt]. B')).toBe('A. [other.txt]. B')
  })

  test('are digits where the model wrote labels, alone or several at once', () => {
    expect(
      readable(withMarks('A [keys.txt]. B [keys.txt, widget.txt] C [other.txt] [keys.txt](x).', SOURCES)),
    ).toBe('A^1. B^1^3 C [other.txt] [keys.txt](x).')
    expect(withoutMarks('A [keys.txt]. B [keys.txt; widget.txt]', SOURCES)).toBe('A. B')
  })

  test('that were traced come after their sentence, and within what is around it', () => {
    for (const [answer, sentence, marked] of [
      ['One. Two.', 'One.', 'One.^1 Two.'],
      ['**One.** Two.', '**One.**', '**One.^1** Two.'],
      ['| a | One. |', '| a | One. |', '| a | One.^1 |'],
      ['See [x](https://a.b/c.d) now.', 'See [x](https://a.b/c.', 'See [x](https://a.b/c.d)^1 now.'],
      ['Call `a.b` now.', 'Call `a.', 'Call `a.b`^1 now.'],
      ['One [keys.txt].', 'One [keys.txt].', 'One^1.'],
    ] as const) {
      expect(readable(markAnswer(answer, [cite(answer, sentence, 'keys')], SOURCES))).toBe(marked)
    }
  })

  test('never change what an answer says', () => {
    const text = fc.array(
      fc.constantFrom('One. ', '**two** ', '`c`', '\n', '| x |', '[k](u) ', 'é', '\ue000'),
    )
    const spans = fc.array(fc.tuple(fc.nat(60), fc.nat(60), fc.constantFrom('keys', 'widget', 'unknown')))
    fc.assert(
      fc.property(text, spans, (pieces, places) => {
        const answer = pieces.join('')
        const citations = places.map(([start, length, document_id]) => ({
          collection: 'docs',
          document_id,
          start: Math.min(start, answer.length),
          end: Math.min(start + length, answer.length),
        }))
        const marked = markAnswer(answer, citations, SOURCES)
        expect(marked.replace(/\ue000\d+:\d+\ue001/g, '')).toBe(answer.replace(/[\ue000\ue001]/g, ' '))
      }),
    )
  })

  test('are shown while an answer is written no sooner than they are whole', () => {
    const answer = 'One [keys.txt]. Two [a](b).'
    let before = ''
    for (let length = 0; length <= answer.length; length += 1) {
      const shown = readable(withMarks(shownPart(answer.slice(0, length)), SOURCES))
      expect(shown).not.toMatch(/\[k/)
      // What was shown stays, but for blanks.
      expect(shown.replace(/\s/g, '').startsWith(before.replace(/\s/g, ''))).toBe(true)
      before = shown
    }
  })

  test('show the sentence that they stand on, with what is around it', () => {
    const text = `First. ${'Filler words here. '.repeat(30)}Keys expire after a day. Last.`
    const keys = source(1, 'keys', text)
    expect(passageOf(keys, 'Keys expire after a day.', '')).toEqual({
      before: expect.stringMatching(/^… .*here\. $/),
      marked: 'Keys expire after a day.',
      after: ' Last.',
    })
    expect(lastSentence('Keys are made here, as of v1.2. They expire after a day. ')).toBe(
      'They expire after a day.',
    )
    expect(lastSentence('')).toBe('')
    expect(passageOf(keys, undefined, 'How long until keys expire').marked).toBe('Keys expire after a day.')
    // Other fields of the document are not part of the passage.
    const more = { ...keys, texts: ['guides', 'f4c1f014', 'Keys expire after a day.'] }
    expect(passageOf(more, 'Keys expire after a day.', '')).toEqual({
      before: '',
      marked: 'Keys expire after a day.',
      after: '',
    })
    // Marks of Markdown are left out, words are whole, and a full stop within a name ends nothing.
    const code = 'Pin `node@24.1.0` in **package.json**, or e.g. in `.nvmrc`, before a build.'
    const { before, marked, after } = passageOf(
      source(1, 'pins', `Intro of many words that come first here. ${code} ${'Otherwise '.repeat(40)}`),
      undefined,
      'Pin the version before you build, in package.json.',
    )
    expect(marked).toBe('Pin node@24.1.0 in package.json, or e.g. in .nvmrc, before a build.')
    expect([before, after.endsWith('Otherwise …')]).toEqual([
      'Intro of many words that come first here. ',
      true,
    ])
    // A sentence that shares one word with the question is not what it means, and a heading is not a passage.
    const page = source(1, 'page', '## Waits\n\nAfter a long wait, the train came at last to the platform.')
    expect(passageOf(page, undefined, 'How long is history kept?')).toEqual({
      path: ['Waits'],
      before: '',
      marked: 'After a long wait, the train came at last to the platform.',
      after: '',
    })
    const nested =
      '# Keys\n## Pages\n```sh\n# no heading\n```\nOf pages.\n\n## Ends\n### By hand\nDelete the key.'
    expect(passageOf(source(1, 'nested', nested), 'Delete the key.', '').path).toEqual([
      'Keys',
      'Ends',
      'By hand',
    ])
    expect(passageOf(source(1, 'nested', nested), 'Of pages.', '').path).toEqual(['Keys', 'Pages'])
    expect(passageOf(source(1, 'none'), undefined, 'x')).toEqual({ before: '', marked: '', after: '' })
  })
})

test('sources are called and linked as the assistant says, and lead to pages alone', () => {
  const hit = (document: object) => ({
    result: { hits: [{ document }], request_params: { collection_name: 'docs' } },
  })
  const data = {
    replies: [
      hit({ id: 'a', name: 'A', link: 'https://a.example/', text: 'Text.' }),
      hit({ id: 'b', link: 'javascript:alert(1)' }),
    ],
    sources: ['a', 'b', 'c'].map((document_id) => ({ collection: 'docs', document_id })),
  }
  expect(sourcesOf(data, { title_field: 'name', url_field: 'link' })).toEqual([
    {
      number: 1,
      collection: 'docs',
      documentId: 'a',
      title: 'A',
      label: 'a.txt',
      url: 'https://a.example/',
      texts: ['Text.'],
    },
    { number: 2, collection: 'docs', documentId: 'b', title: 'b', label: 'b.txt', texts: [] },
    { number: 3, collection: 'docs', documentId: 'c', title: 'c', label: 'c.txt', texts: [] },
  ])
  // Visitors have no key for the page on which Parley shows a document; somebody else's page of that name is theirs to open.
  const own = { id: 'a b', url: 'http://localhost:8108/document#docs/a%20b' }
  const other = { id: 'c', url: 'https://a.example/document#docs/a%20b' }
  const shown = sourcesOf(
    {
      ...data,
      replies: [hit(own), hit(other)],
      sources: [
        { collection: 'docs', document_id: 'a b' },
        { collection: 'docs', document_id: 'c' },
      ],
    },
    {},
  )
  expect(shown.map(({ url }) => url)).toEqual([undefined, other.url])
  const citation = { collection: 'docs', document_id: 'x', start: 0, end: 1, quote: 'Said.' }
  expect(sourcesCited([citation, citation], {})).toMatchObject([{ number: 1, texts: ['Said.'] }])
})

describe('Markdown that is not finished', () => {
  test.each([
    ['a **bo', 'a **bo**'],
    ['a **', 'a '],
    ['a `co', 'a `co`'],
    ['see [the gui', 'see the gui'],
    ['see [the guide](https://a', 'see the guide'],
    ['text\n\n#', 'text\n\n'],
    ['text\n\n- ', 'text\n\n'],
    ['| a | b', ''],
    ['| a | b |\n| -', ''],
    ['| a | b |\n| - | - |\n| c', '| a | b |\n| - | - |\n| c'],
    ['```js\nlet **a', '```js\nlet **a'],
    ['whole **text** here.', 'whole **text** here.'],
  ])('%j is shown as %j', (written, shown) => {
    expect(mend(written)).toBe(shown)
  })
})

test('TeX stays as it is written, money is none, and languages of code are known by their other names', () => {
  const written = (text: string) =>
    lex(text).blocks.flatMap(({ code, token }): unknown[] =>
      code ? [code] : 'tokens' in token ? token.tokens!.filter(({ type }) => type === 'codespan') : [],
    )
  expect(written('The sum is \\(a_1 + *b* + c\\), or $x^2 = y$.')).toMatchObject([
    { text: 'a_1 + *b* + c' },
    { text: 'x^2 = y' },
  ])
  expect(written('$$\n\\frac{a*b}{c_1}\n$$\n\\[ x_1 \\]\n')).toEqual([
    { text: '\\frac{a*b}{c_1}', language: 'tex' },
    { text: 'x_1', language: 'tex' },
  ])
  for (const money of ['It costs $5 and $10.', 'From $5 = cheap to $10', '$HOME and $PATH', '\\[not closed'])
    expect(written(money)).toEqual([])
  expect(['TypeScript', 'sh', 'c++', 'tex', ''].map(grammarOf)).toEqual([
    'tsx',
    'bash',
    'c',
    undefined,
    undefined,
  ])
})

describe('the script', () => {
  test(`weighs at most ${BUDGET_KB} KB when a page loads, and covers what it loads later by its hash`, async () => {
    const files = await bundleWidget()
    const first = files[VERSIONED] ?? ''
    expect(gzipKb(first)).toBeLessThan(BUDGET_KB)
    expect(files['parley-chat.js']).toBe(first)
    expect(JSON.parse(files['integrity.json'] ?? '')).toEqual({ [VERSIONED]: integrityOf(first) })
    const parts = Object.keys(files).filter((name) => /-\w{10}\.js$/.test(name))
    expect(parts.length).toBe(5 + Object.keys(grammars).length)
    for (const part of parts) {
      expect(first).toContain(part)
      expect(first).toContain(integrityOf(files[part] ?? ''))
    }
  })

  test('has a documentation that names its parts and events, and no others', () => {
    const folder = join(import.meta.dirname, '../../ui/widget/src')
    const source = readdirSync(folder)
      .filter((name) => name.endsWith('.ts'))
      .map((name) => readFileSync(join(folder, name), 'utf8'))
      .join('\n')
    const docs = readFileSync(join(import.meta.dirname, '../../docs/widget.md'), 'utf8')
    const named = (text: string, expression: RegExp) =>
      [...new Set([...text.matchAll(expression)].map(([, name]) => name!))].sort()
    const [, parts = ''] = /`::part\(\)`: ([\s\S]*?)\. Light/.exec(docs) ?? []
    expect(named(parts, /`([a-z]+)`/g).length).toBeGreaterThan(20)
    expect(named(parts, /`([a-z]+)`/g)).toEqual(named(source, /\bpart: '([a-z]+)/g))
    const [, events = ''] = /## Which properties.*?\n([\s\S]*?)\n## /.exec(docs) ?? []
    expect(named(events, /`parley-([a-z]+)`/g)).toEqual(
      named(source, /'parley-(question|answer|citation|feedback|error|open|close|handover|result)'/g),
    )
  })

  /** Every language of the widget: its tag, and its words. */
  const LANGUAGES = readdirSync(join(import.meta.dirname, '../../ui/widget/src/languages')).map(
    (file): [string, Record<string, string>] => [
      file.replace('.json', ''),
      JSON.parse(
        readFileSync(join(import.meta.dirname, '../../ui/widget/src/languages', file), 'utf8'),
      ) as Record<string, string>,
    ],
  )
  const placesOf = (text = '') => [...text.matchAll(/\{\w+\}/g)].map(([place]) => place).sort()
  /** How a text ends: what a language writes in a way of its own counts as the English sign. */
  const endOf = (text = '') => {
    const signs: Record<string, string> = { '。': '.', '？': '?', '؟': '?', '：': ':', '）': ')' }
    const [sign = ''] = /[.…:)?。？؟：）]$/.exec(text) ?? []
    return signs[sign] ?? sign
  }

  test('has words in 14 languages, and loads those of each but English', () => {
    expect(LANGUAGES.length + 1).toBe(14)
    const loaded = readFileSync(join(import.meta.dirname, '../../ui/widget/src/languages.ts'), 'utf8')
    const named = [...loaded.matchAll(/from '\.\/languages\/(\w+)\.json'/g)].map(([, tag]) => tag)
    expect(named).toEqual(LANGUAGES.map(([tag]) => tag))
  })

  test.each(LANGUAGES)(
    'says in %s all that it says in English, with the same places and ends',
    (_, words) => {
      expect(Object.keys(words)).toEqual(Object.keys(ENGLISH))
      for (const [name, english] of Object.entries(ENGLISH)) {
        const text = words[name]
        expect([name, text?.trim()]).toEqual([name, text])
        expect([name, placesOf(text)]).toEqual([name, placesOf(english)])
        expect([name, endOf(text)]).toEqual([name, endOf(english)])
      }
    },
  )

  test('fits what stands on buttons', () => {
    const buttons = ['send', 'cancel', 'retry', 'allow', 'refuse', 'newChat', 'removeSure', 'person'] as const
    for (const [tag, words] of LANGUAGES)
      for (const name of buttons) expect([tag, name, words[name]!.length <= 28]).toEqual([tag, name, true])
  })

  test('writes French with spaces that do not break before its signs', () => {
    const french = Object.values(Object.fromEntries(LANGUAGES).fr!)
    expect(french.filter((text) => /[^\u00a0][:;?!]/.test(text))).toEqual([])
  })
})
