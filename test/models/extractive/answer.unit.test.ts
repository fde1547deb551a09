import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { answerFrom as answer } from '../../../src/models/extractive/answer'
import { ENGLISH } from '../../../src/models/extractive/language'
import { sentencesOf, splitSentences } from '../../../src/models/extractive/sentences'
import type { Source } from '../../../src/models/language-model'
import { isSlip, isSwap } from '../../../src/models/spelling'
import { compoundsOf, wordsOf } from '../../../src/models/words'
import { ask, textOf } from '../ask'

const answerFrom = (question: string, sources: Source[]): string => answer(question, sources).text

const from = (...documents: Record<string, unknown>[]) =>
  documents.map((document) => ({ collection: 'docs', document }))

const films = from(
  {
    id: '1',
    title: 'Alien',
    text: 'Alien is a 1979 science fiction horror film directed by Ridley Scott. It stars Sigourney Weaver as Ellen Ripley. The film grossed 203 million dollars.',
  },
  {
    id: '2',
    title: 'Heat',
    text: 'Heat is a 1995 crime film written and directed by Michael Mann. It was shot in Los Angeles because Mann knew the city.',
  },
  {
    id: '3',
    title: 'Life',
    text: 'Life is a 2017 science fiction horror film. Its crew find a cell from Mars.',
    year: 2017,
  },
)

describe('an answer that has to cite', () => {
  const labelled = films.map((film, index) => ({ ...film, label: `film-${index}.txt` }))

  it('names the document of each sentence after it', () => {
    expect(answerFrom('Who directed Heat?', labelled)).toBe(
      'Heat is a 1995 crime film written and directed by Michael Mann. [film-1.txt] ' +
        'It was shot in Los Angeles because Mann knew the city. [film-1.txt]',
    )
  })

  it('cites nothing for what the documents do not say', () => {
    expect(answerFrom('What is the capital of Peru?', labelled)).toBe(ENGLISH.notFound)
  })
})

describe('a verb and its particle', () => {
  const pages = from(
    { id: 'a', title: 'Disks', text: 'A disk holds files. Some disks are slow.' },
    { id: 'b', title: 'Backups', text: 'A backup of all files runs at night. It takes an hour.' },
    { id: 'c', title: 'Doors', text: 'Guests log in at the desk. The desk opens at nine.' },
  )

  it.each([
    ['When do you back up my files?', 'A backup of all files runs at night.'],
    ['are files being backed up at night', 'A backup of all files runs at night.'],
    ['Where is the guest login?', 'Guests log in at the desk.'],
  ])('are the same as one word: %s', (question, sentence) => {
    expect(answerFrom(question, pages)).toContain(sentence)
  })
})

describe('words before a particle', () => {
  it.each([
    ['how much is in the fund today', []],
    ['what do I put in the form', []],
    ['is it the same as in Excel', []],
    ['can I carry over days', ['carryover', 'carriover']],
    ['why am I not logged in', ['login', 'loggedin']],
    ['backing up', ['backup', 'backingup']],
  ])('are joined if they are a verb of theirs: %s', (question, joined) => {
    expect(
      compoundsOf(wordsOf(question))
        .map(({ folded }) => folded)
        .sort(),
    ).toEqual(joined.sort())
  })
})

describe('an answer', () => {
  it.each([
    ['Who directed Alien?', 'Alien is a 1979 science fiction horror film directed by Ridley Scott.'],
    ['Who directed Heat?', 'Heat is a 1995 crime film written and directed by Michael Mann.'],
    ['How much did Alien gross?', 'The film grossed 203 million dollars.'],
    ['Why was Heat shot in Los Angeles?', 'It was shot in Los Angeles because Mann knew the city.'],
    ['who directd alien', 'Alien is a 1979 science fiction horror film directed by Ridley Scott.'],
  ])('to %s has the sentence that says so', (question, sentence) => {
    expect(answerFrom(question, films)).toContain(sentence)
  })

  it('opens a sentence that points back with the one before it', () => {
    expect(answerFrom('Why was Heat shot in Los Angeles?', films)).toMatch(/^Heat is a 1995 crime film/)
  })

  it('to a question for several takes several documents', () => {
    const answer = answerFrom('Which science fiction horror films are there?', films)
    expect(answer).toContain('Alien')
    expect(answer).toContain('Life')
    expect(answer).not.toContain('Heat')
  })

  it.each(['What is the capital of Mongolia?', 'Who won the world cup in 1990?'])(
    'to %s is that there is none',
    (question) => {
      expect(answerFrom(question, films)).toBe(ENGLISH.notFound)
    },
  )

  it('to a question about somebody else names places to read instead', () => {
    const { text, declined } = answer('Who directed Alien Resurrection?', films)
    expect(declined).toBe(true)
    expect(text).toMatch(/^The documents do not answer this directly\. The best places to read:\n\n- Alien: /)
  })

  it('links the places to read that have an address', () => {
    const pages = from(
      {
        id: 'a',
        title: 'Parks',
        text: 'The park opens at nine in summer.',
        url: 'https://example.org/parks',
      },
      { id: 'b', title: 'Pools', text: 'The pool is heated.', url: '/pools' },
    )
    const { text, declined } = answer('When does the park of Zanzibar open for skating and sledging?', pages)
    expect(declined).toBe(true)
    expect(text).toContain('- [Parks](https://example.org/parks): The park opens at nine in summer.')
  })

  it('takes the code right under a heading for what the heading says', () => {
    const docs = from({
      id: 'c',
      title: 'Cookies',
      text: '## Set a cookie\n\n```ts\nsetCookie(c)\n```\n\n## Delete a cookie\n\n```ts\ndeleteCookie(c)\n```\n',
    })
    expect(answerFrom('How do I delete a cookie?', docs)).toContain('deleteCookie(c)')
    expect(answerFrom('How do I delete a cookie?', docs)).not.toContain('setCookie(c)')
  })

  it('to what is asked in a long talk is that of the clause that asks', () => {
    const chatty =
      'Hello there, I have been looking through all of your pages for hours now and my colleagues are getting ' +
      'impatient with me. Who directed Heat? Thanks a lot in advance for any pointers that you might have!'
    expect(answerFrom(chatty, films)).toContain('directed by Michael Mann')
  })

  it('without documents says so', () => {
    expect(answerFrom('Who?', [])).toBe(ENGLISH.nothingFound)
  })

  it('brings the code along where one asks how', () => {
    const docs = from({
      id: 'status',
      title: 'Context',
      text: '# Context\n\nThe `Context` object lives for a request.\n\n## status()\n\nYou can set a status code with `c.status()`.\n\n```ts\nc.status(201)\n```\n\n## header()\n\nYou can set headers with `c.header()`.',
    })
    expect(answerFrom('How do I set the status code?', docs)).toBe(
      `${ENGLISH.from}\n\n**Context › status()**\n\nYou can set a status code with \`c.status()\`.\n\n\`\`\`ts\nc.status(201)\n\`\`\``,
    )
  })

  it('can come from short fields', () => {
    const docs = from({ id: '124', company_name: 'Stark Industries', num_employees: 5215, country: 'USA' })
    expect(answerFrom('How many employees does Stark Industries have?', docs)).toBe(
      'Stark Industries — num employees: 5215.',
    )
  })

  it('is made of the documents only, whatever they are', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.array(fc.dictionary(fc.string(), fc.jsonValue())),
        (question, documents) => {
          expect(typeof answerFrom(question, from(...documents))).toBe('string')
        },
      ),
      { numRuns: 300 },
    )
  })

  it('is streamed word by word, and is the same in one piece', async () => {
    const request = { question: 'Who directed Alien?', sources: films }
    const model = { model_name: 'local/extractive' }
    const streamed = await ask(model, request)
    expect(streamed.filter(({ type }) => type === 'text').length).toBeGreaterThan(5)
    const whole = await ask(model, { ...request, stream: false })
    expect(whole.filter(({ type }) => type === 'text')).toHaveLength(1)
    expect(textOf(streamed)).toBe(textOf(whole))
    expect(streamed).toContainEqual({ type: 'usage', inputTokens: 0, outputTokens: 0 })
    expect(streamed.at(-1)).toEqual({ type: 'finish', reason: 'stop' })
  })
})

describe('a text without spaces', () => {
  const pages = from(
    { id: 'r', title: '返品', text: '商品は三十日以内であれば返品できます。送料はお客様のご負担です。' },
    { id: 'b', title: '営業時間', text: '店は朝九時に開きます。日曜日は休みです。' },
    { id: 'z', title: '会员', text: '会员每年的费用是一百元。学生可以免费加入。' },
    { id: 't', title: 'การจัดส่ง', text: 'สินค้าจะจัดส่งภายในสามวัน' },
  )

  it.each([
    ['日曜日は開いていますか？', '日曜日は休みです。'],
    ['返品は何日以内にできますか', '三十日以内'],
    ['会员费用是多少？', '一百元'],
    ['จัดส่งสินค้าภายในกี่วัน', 'สามวัน'],
  ])('answers %s', (question, said) => {
    const { text, declined } = answer(question, pages)
    expect(declined).toBeUndefined()
    expect(text).toContain(said)
  })

  it('does not answer what it does not say', () => {
    expect(answer('駐車場はありますか', pages).declined).toBe(true)
    expect(answer('老板叫什么名字', pages).declined).toBe(true)
  })
})

describe('sentences', () => {
  it('end where they end', () => {
    expect(
      splitSentences(
        'Dr. J. R. Smith paid $1.50 in the U.S. office. He left at 5 p.m. on Monday! "Why?" asked Ann. 你好。再见。',
      ),
    ).toEqual([
      'Dr. J. R. Smith paid $1.50 in the U.S. office.',
      'He left at 5 p.m. on Monday!',
      '"Why?" asked Ann.',
      '你好。',
      '再见。',
    ])
  })

  it('lose nothing of a text but spaces', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', 'B', '.', '!', '?', ' ', '"', '1', '。') }),
        (text) => {
          expect(splitSentences(text).join('').replace(/\s/g, '')).toBe(text.replace(/\s/g, ''))
        },
      ),
    )
  })

  it('of Markdown stand under their headings, items and rows by themselves', () => {
    const text =
      '# Top\nHard-wrapped\nline. And [more](http://x).\n\n## Sub\n- **first** item\n- second\n\n| a | b |\n|---|---|\n| 1 | 2 |\n'
    expect(sentencesOf({ title: 'T', text }).map(({ text, context }) => [text, context.join('/')])).toEqual([
      ['Hard-wrapped line.', 'T/Top'],
      ['And more.', 'T/Top'],
      ['first item', 'T/Top/Sub'],
      ['second', 'T/Top/Sub'],
      ['1 — 2', 'T/Top/Sub'],
    ])
  })

  it('of a table are its rows, each value with its column, and not the row of their names', () => {
    const text =
      'Prices:\n\n| Plan | A month | Users |\n| --- | ---: | --- |\n| Small | $5 | 3 |\n| Large | $9 | |\n'
    expect(sentencesOf({ text }).map(({ text, place }) => [text, place!.blocks[place!.at]!.kind])).toEqual([
      ['Prices:', 'text'],
      ['Small — A month: $5; Users: 3', 'table'],
      ['Large — A month: $9', 'table'],
    ])
  })
})

describe('a page of questions and answers', () => {
  const page = (heading: string, text: string) => ({ id: heading, title: 'Help', heading, text })
  const help = from(
    page('How do I add a card?', 'You add and pay a card in the office. What cards cost is said elsewhere.'),
    page(
      'Which cards can I use?',
      '| Card | Fee | Where |\n|---|---|---|\n| Blue | 1 | here |\n| Red | 2 | there |',
    ),
    page(
      'What does a card cost?',
      'That depends. Per month:\n\n- Blue is 3 euros.\n- Red is 4 euros.\n\nBoth last.',
    ),
    page(
      'How do I change or end a card?',
      'A letter will do. The office writes back.\n\nA call ends it at once.',
    ),
    page('How is this page kept?', '- By hand, and every card cost is checked.'),
  )

  it.each([
    [
      'a list that is the whole answer',
      'Which cards can I use?',
      '| Card | Fee | Where |\n|---|---|---|\n| Blue | 1 | here |\n| Red | 2 | there |',
    ],
    [
      'what a colon announces, rather than a sentence with the same words',
      'What does the card cost?',
      'That depends. Per month:\n\n- Blue is 3 euros.\n- Red is 4 euros.',
    ],
    [
      'what opens it, and what has the word that this lacks',
      'How do I end the card?',
      'A letter will do. The office writes back.\n\nA call ends it at once.',
    ],
  ])('answers with %s', (_, question, answer) => {
    expect(answerFrom(question, help).split('\n\n').slice(2).join('\n\n')).toContain(answer)
  })

  it('does not answer under a heading that asks something else', () => {
    expect(answerFrom('How many cards does the office have?', help)).not.toContain('Blue')
  })

  it('says what a thing is where that is said, not where it is said how to get one', () => {
    const pages = from(
      page('How do I add a card?', 'In the office.'),
      page('Cards', 'A card is a small piece of plastic.'),
    )
    const said = answerFrom('What is a card?', pages)
    expect(
      said.startsWith(`${ENGLISH.from}\n\n**Help › Cards**\n\nA card is a small piece of plastic.`),
    ).toBe(true)
  })

  it('answers a question of small words alone', () => {
    expect(
      answerFrom(
        'Who may do what?',
        from(page('Who may do what?', 'Everybody may do everything that there is.')),
      ),
    ).toBe(`${ENGLISH.from}\n\n**Help › Who may do what?**\n\nEverybody may do everything that there is.`)
  })
})

describe('a passage whose heading is the question', () => {
  const passage = {
    id: 'conversations#how-long',
    title: 'Conversations',
    heading: 'How long is history kept?',
    text: 'For the `ttl` of the model, one day unless you set another. A sweep removes what is older.',
    url: 'docs/conversations.md#how-long-is-history-kept',
    section: 'conversations',
  }

  it('answers with what opens under it, not with itself', () => {
    const answer = answerFrom('How long is history kept?', [{ collection: 'docs', document: passage }])
    expect(answer).toMatch(
      /^[^\n]*\n\n\*\*[^\n]*How long is history kept\?\]?[^\n]*\*\*\n\nFor the `ttl` of the model/,
    )
    expect(answer.split('How long is history kept?')).toHaveLength(2)
  })

  it('does not read out its address', () => {
    const answer = answerFrom('How long are conversations kept?', [{ collection: 'docs', document: passage }])
    expect(answer).not.toContain('docs/conversations.md')
  })
})

describe('a slip of the pen', () => {
  it.each([
    ['gendr', 'gender', true],
    ['shuold', 'should', true],
    ['hearin', 'hearing', true],
    ['cost', 'post', false],
    ['same', 'same', false],
    ['health', 'wealth', false],
    ['contract', 'contrast', true],
    ['plain', 'planet', false],
  ])('%s for %s: %s', (a, b, slip) => {
    expect(isSlip(a, b)).toBe(slip)
  })
})

describe('two letters that changed places', () => {
  it.each([
    ['kye', 'key', true],
    ['hwo', 'how', true],
    ['key', 'key', false],
    ['kei', 'key', false],
    ['eky', 'key', true],
    ['abcd', 'badc', false],
  ])('%s for %s: %s', (a, b, swapped) => {
    expect(isSwap(a, b)).toBe(swapped)
  })

  it('do not keep a short word from being found', () => {
    const pages = from(
      { id: '1', title: 'Keys', text: 'A scoped key has parameters baked in.' },
      { id: '2', title: 'Lunch', text: 'Lunch is at noon.' },
    )
    expect(answerFrom('wat is a scoped kye', pages)).toContain('A scoped key has parameters baked in.')
  })
})
