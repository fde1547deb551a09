import { describe, expect, it } from 'vitest'
import { answerFrom as answer } from '../../../src/models/extractive/answer'
import { ENGLISH } from '../../../src/models/extractive/language'
import { questionsIn, readQuestion } from '../../../src/models/extractive/question'
import { sentencesOf } from '../../../src/models/extractive/sentences'
import type { Source } from '../../../src/models/language-model'

const answerFrom = (question: string, sources: Source[]): string => answer(question, sources).text

const from = (...documents: Record<string, unknown>[]) =>
  documents.map((document) => ({ collection: 'docs', document }))

const films = from(
  {
    id: '1',
    title: 'Alien',
    text: 'Alien is a 1979 science fiction horror film. It stars Sigourney Weaver.',
  },
  {
    id: '2',
    title: 'Heat',
    text: 'Heat is a 1995 crime film directed by Michael Mann. It was shot in Los Angeles.',
  },
)

describe('what the question asks of a long list or table', () => {
  const shop = (name: string, wifi: string, parking: string) => ({
    id: name,
    title: `The ${name} shop`,
    text:
      `The ${name} shop is one of our three shops. It sells bread, rolls, cakes and coffee. ` +
      'Fresh bread comes out of the oven every morning.\n\n' +
      `- Manager: Ursula Keller\n- Phone: 044 555 01 23\n- Seats: 12 inside and 20 outside\n- Wheelchair access: two steps\n- Wi-Fi: ${wifi}\n- Parking: ${parking}`,
  })
  const shops = from(shop('Station', 'none', 'behind the house'), shop('Harbour', 'free', 'on the quay'))
  const hours = from({
    id: 'hours',
    title: 'Opening hours',
    text:
      'Our shops open as follows.\n\n| Day | Station | Harbour |\n| --- | --- | --- |\n' +
      '| Monday | 7:00 to 19:00 | closed |\n| Saturday | 7:00 to 21:00 | 8:00 to 16:00 |\n| Sunday | 8:00 to 18:00 | closed |\n\n' +
      'On public holidays only the Station shop is open, and it closes at noon.',
  })

  it.each([
    ['Does the Harbour shop have parking?', 'Parking: on the quay'],
    ['Does the Harbour shop have wifi?', 'Wi-Fi: free'],
  ])('is shown however far down it stands: %s', (question, line) => {
    expect(answerFrom(question, shops)).toContain(line)
  })

  it('is the row of the day that was asked about', () => {
    expect(
      answerFrom('Does the Station shop close early on public holidays or on Saturday?', hours),
    ).toContain('| Saturday | 7:00 to 21:00 | 8:00 to 16:00 |')
  })
})

describe('pages that differ in a value', () => {
  const page = (name: string, access: string) => ({
    id: name,
    title: `The ${name} shop`,
    text: `The ${name} shop sells bread.\n\n- Seats: 12\n- Wheelchair access: ${access}`,
  })
  const pages = from(page('Station', 'no, two steps'), page('Harbour', 'yes'), page('Mill', 'yes'))

  it('are all shown, each under its title, and none as the answer', () => {
    const said = answerFrom('Do you have wheelchair access?', pages)
    expect(said).toContain(ENGLISH.unsure)
    for (const [name, access] of [
      ['Station', 'no, two steps'],
      ['Harbour', 'yes'],
      ['Mill', 'yes'],
    ])
      expect(said).toMatch(
        new RegExp(`\\*\\*The ${name} shop\\*\\*\\n\\n[^*]*- Wheelchair access: ${access}`),
      )
  })

  it('are shown once where a page is there twice', () => {
    const said = answerFrom('Do you have wheelchair access?', [
      ...from(page('Mill', 'yes')),
      ...from(page('Mill', 'yes')),
    ])
    expect(said.split('Wheelchair access').length).toBe(2)
  })

  it('do not disturb by a label that nobody asked for', () => {
    const noted = from(
      { id: '1', title: 'Rent', text: '- Note: the hall costs 300 francs in the evening' },
      { id: '2', title: 'Bread', text: '- Note: bread keeps for a week' },
    )
    expect(answerFrom('What does the hall cost in the evening?', noted)).toContain(
      'the hall costs 300 francs',
    )
    expect(answerFrom('What does the hall cost in the evening?', noted)).not.toContain('bread keeps')
  })

  it('are told apart by a name in the question', () => {
    const said = answerFrom('Is there wheelchair access at the Harbour shop?', pages)
    expect(said).toContain('Wheelchair access: yes')
    expect(said).not.toContain('two steps')
  })
})

describe('a price', () => {
  const shop = from(
    {
      id: '1',
      title: 'Questions',
      text: '## How long does bread keep?\n\n- Baguette: eat it the same day\n- Rye: a week',
    },
    {
      id: '2',
      title: 'Price list',
      text: '| Bread | Weight | Price |\n| --- | --- | --- |\n| Baguette | 250 g | €1.90 |\n| Rye | 750 g | €4.90 |',
    },
  )

  it('is an amount of money', () => {
    expect(answerFrom('how much is a baguette', shop)).toMatch(
      /^(?:[^\n]*:\n\n)?\*\*Price list\*\*\n\n\| Bread \| Weight \| Price \|\n\| --- \| --- \| --- \|\n\| Baguette \| 250 g \| €1.90 \|/,
    )
  })
})

describe('several questions at once', () => {
  it.each([
    'Who directed Heat and when did Alien come out?',
    'Who directed Heat? And when did Alien come out?',
  ])('are answered one after another: %s', (question) => {
    const said = answerFrom(question, films)
    expect(said).toContain('directed by Michael Mann')
    expect(said).toContain('Alien is a 1979')
  })

  it('are answered as far as the documents do, and the rest is named', () => {
    const said = answerFrom('Who directed Heat and what is the capital of Peru?', films)
    expect(said).toContain('directed by Michael Mann')
    expect(said).toContain(`${ENGLISH.notFound} (what is the capital of Peru?)`)
  })

  it.each([
    'Who directed Heat and where was it shot?',
    'Which films are from 1979 and 1995?',
    'Which film is about Los Angeles and is directed by Mann?',
    'Who directed Heat? '.repeat(40),
  ])('are one if a part does not stand alone, or if they are many: %s', (question) => {
    expect(questionsIn(question)).toEqual([question])
  })
})

describe('how an answer begins', () => {
  it('is with what its first word but one points at', () => {
    const pages = from({
      id: '1',
      title: 'Safety',
      text: 'Nothing is lost. Time travel brings the database back. Use it for mistakes of the last hours of a working day.',
    })
    expect(answerFrom('What is for mistakes of the last hours?', pages)).toContain('Time travel brings')
  })

  it('is with the code below a heading that asks the same', () => {
    const pages = from({
      id: '1',
      title: 'Backups',
      text: '# Backups\n\n## How do I back up?\n\n```sh\nsave --all\n```\n\nThe folder holds what people asked. So the backup is of one moment.',
    })
    expect(answerFrom('how do I backup everything', pages)).toMatch(/save --all.*\n```\n\nThe folder/)
  })

  it('says when a thing starts, and not only another time', () => {
    const pages = from({
      id: '1',
      title: 'Benefits',
      text:
        '## Profit sharing\n\nWe share a tenth of the profits of each year with everybody who works here. Profits are distributed when the books ' +
        'are closed, usually around March. What we are able to share may change a lot from one year to the next one, as everybody ' +
        'knows who has been here for some time.\n\nYou get a share each month, starting on your second anniversary.',
    })
    expect(answerFrom('When does profit sharing start?', pages)).toContain('second anniversary')
  })
})

it('a month or a day in the question is no name that the documents lack', () => {
  const rooms = from({
    id: '1',
    title: 'Rooms',
    text: 'We have five kinds of rooms.\n\n| Room | Low season | High season |\n| --- | --- | --- |\n| Single | 79 euros | 109 euros |\n| Double | 119 euros | 159 euros |',
  })
  expect(answerFrom('How much is a double room in August?', rooms)).toContain('159 euros')
})

it('the sentence that says when is shown with the table that needs it', () => {
  const rooms = from({
    id: '1',
    title: 'Rooms',
    text:
      '| Room | Price in low season | Price in high season |\n| --- | --- | --- |\n| Single | 79 | 109 |\n| Double | 119 | 159 |\n\n' +
      'High season is from 15 June to 15 September.',
  })
  expect(answerFrom('When is high season?', rooms)).toMatch(
    /\n\nHigh season is from 15 June to 15 September\.$/,
  )
})

it('the description of one product is not surely the cheapest', () => {
  const product = (name: string, price: number, description: string) => ({
    id: name,
    name,
    category: 'Headsets',
    price,
    description,
  })
  const headsets = from(
    product('Thrush', 39, 'Wired headset with a foldable microphone for calls.'),
    product('Owl', 149, 'Headset with active noise cancelling and a long cable.'),
  )
  const question = 'Which is the cheapest wired headset with a foldable microphone?'
  expect(answerFrom(question, headsets)).toContain(ENGLISH.unsure)
  expect(answerFrom(question.replace('the cheapest', 'a'), headsets)).not.toContain(ENGLISH.unsure)
})

it('"when" that begins no question asks for no time', () => {
  expect(
    ['When does it open?', 'do you know when it opens', 'So when?'].map((text) => readQuestion(text).kind),
  ).toEqual(['when', 'when', 'when'])
  expect(
    [
      'Do I get paid for unused holidays when I leave?',
      'What happens when I leave?',
      'When should I leave?',
    ].map((text) => readQuestion(text).kind),
  ).toEqual(['other', 'other', 'other'])
  expect(readQuestion('How long can I be away when my father dies?').kind).toBe('count')
})

describe('steps with code', () => {
  const steps = (code: (command: string) => string) =>
    `To install Ospr:\n\n1. Download the archive:\n\n${code('wget ospr.tgz')}\n\n2. Unpack it:\n\n${code('tar xzf ospr.tgz')}\n\n3. Run the setup:\n\n${code('./ospr/setup')}\n`

  it.each([
    ['indented', (command: string) => `   \`\`\`sh\n   ${command}\n   \`\`\``],
    ['at the margin', (command: string) => `\`\`\`sh\n${command}\n\`\`\``],
    ['between tildes', (command: string) => `   ~~~\n   ${command}\n   ~~~`],
    ['between words', (command: string) => `   Say:\n\n   \`\`\`\n   ${command}\n   \`\`\`\n\n   Wait.`],
    ['by its indent', (command: string) => `       ${command}`],
    ['in a quote', (command: string) => `   > \`${command}\``],
  ])('keep their numbers, each followed by its code: %s', (_, code) => {
    const said = answerFrom(
      'How do I install Ospr?',
      from({ id: 'i', title: 'Installing Ospr', text: steps(code) }),
    )
    const places = ['1. Download', 'wget', '2. Unpack', 'tar xzf', '3. Run', './ospr/setup'].map((part) =>
      said.indexOf(part),
    )
    expect(places[0]).toBeGreaterThan(-1)
    expect(places).toEqual([...places].sort((a, b) => a - b))
  })
})

describe('a cell of a table', () => {
  const table = (...rows: string[]) =>
    `| Option | Type | Description |\n| --- | --- | --- |\n${rows.join('\n')}\n`

  it('may have a pipe behind a backslash', () => {
    const rows = [
      '| `cache.size` | int | Entries; `a \\| b` is allowed |',
      '| `log.level` | string | How much |',
    ]
    const [first] = sentencesOf({ text: table(...rows) })
    expect(first!.text).toBe('`cache.size` — Type: int; Description: Entries; `a | b` is allowed')
    const said = answerFrom(
      'What does cache.size mean?',
      from({ id: 'c', title: 'Options', text: table(...rows) }),
    )
    expect(said).toContain('| `cache.size` | int | Entries; `a \\| b` is allowed |')
  })

  it('of a long table is shown with its head, and the rows around it are left out', () => {
    const rows = Array.from(
      { length: 60 },
      (_, at) => `| \`option.${at}x\` | int | The value number ${at} of many |`,
    )
    rows[30] = '| `cache.size` | int | Entries that are kept in memory |'
    const said = answerFrom(
      'What does cache.size mean?',
      from({ id: 'c', title: 'Options', text: table(...rows) }),
    )
    expect(said).toContain('| Option | Type | Description |\n| --- | --- | --- |\n')
    expect(said).toContain(rows[30])
    expect(said).not.toContain('option.3x')
  })
})

describe('a synonym by which the search found a document', () => {
  const [warranty] = from({
    id: 'w',
    title: 'Warranty',
    text: 'Each notebook has a guarantee of three years. Repairs are free of charge in that time.',
  })
  const [shipping] = from({ id: 's', title: 'Shipping', text: 'Parcels take two days to all cities.' })
  const question = 'Is a kludge repaired?'

  it('says the word of the question that the document lacks', () => {
    expect(answer(question, [{ ...warranty!, matched: ['notebook'] }, shipping!])).toEqual({
      text: expect.stringContaining('Repairs are free of charge'),
    })
    expect(answer(question, [warranty!, shipping!])).toMatchObject({ warned: true })
  })

  it('is no word of the question in another spelling, and none that says little', () => {
    const found = answer(question, [{ ...shipping!, matched: ['take', 'parcels'] }, warranty!])
    expect(found).not.toEqual({ text: expect.stringContaining('Parcels') })
    expect(answer(question, [{ ...warranty!, matched: ['repairs', 'is'] }, shipping!])).toEqual(
      answer(question, [warranty!, shipping!]),
    )
  })
})

it('a passage that begins in the middle of a table is shown as a list', () => {
  const [rest] = from({
    id: 'r',
    title: 'Rooms',
    text: '| The red room | 12 seats | `first` floor |\n| The blue room | 40 seats | cellar |',
  })
  expect(answerFrom('How many seats does the blue room have?', [rest!])).toContain(
    '- The red room — 12 seats; `first` floor\n- The blue room — 40 seats; cellar',
  )
})
