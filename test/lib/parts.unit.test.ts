/** Content of messages: each kind of part has its place in stores, prompts and budgets. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  addText,
  contentOf,
  fromStored,
  lasting,
  type Part,
  promptText,
  textOf,
  toStored,
} from '../../src/lib/parts'
import { fitTranscript, historyOf, toChat } from '../../src/turn/look-back'
import { byteLength, fitHistory } from '../../src/turn/prompt'
import { contents, otherParts } from '../turn/logs'

describe('content', () => {
  it('is stored and read back as it is, beside the text that every protocol reads', () => {
    fc.assert(
      fc.property(contents, (content) => {
        const { message, parts } = toStored(content)
        expect(message).toBe(textOf(content))
        const back = fromStored(message, parts)
        expect(textOf(back)).toBe(message)
        if (content.some(({ type }) => type !== 'text')) expect(back).toEqual(content)
        else expect(parts).toBeUndefined()
      }),
    )
  })

  it('is the text where somebody has edited the document, or where its parts are none', () => {
    const content: Part[] = [...contentOf('a'), { type: 'tool_result', id: '1', text: 'b' }]
    const { parts } = toStored(content)
    expect(fromStored('edited', parts)).toEqual(contentOf('edited'))
    for (const wrong of ['{', '[{"type":"sound"}]', '{}', 7, null, undefined]) {
      expect(fromStored('a', wrong)).toEqual(contentOf('a'))
    }
  })

  it('grows at its end, piece by piece', () => {
    fc.assert(
      fc.property(fc.array(fc.string()), (pieces) => {
        const content: Part[] = []
        for (const piece of pieces) addText(content, piece)
        expect(content).toEqual(contentOf(pieces.join('')))
      }),
    )
  })

  it('is in a history without its files, and with everything else', () => {
    fc.assert(
      fc.property(contents, (content) => {
        expect(lasting(content)).toEqual(content.filter(({ type }) => type !== 'file'))
      }),
    )
  })
})

describe('a part of each kind', () => {
  it('counts in the budget of a prompt with what the prompt shows of it', () => {
    fc.assert(
      fc.property(
        fc.array(contents, { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 210, max: 600 }),
        (said, bytes) => {
          const history = said.map((content) => toChat({ role: 'user', content, timestamp: 0 }))
          const kept = fitHistory(history, 'q', bytes, 'tags', 'openai')
          expect(kept.reduce((sum, { content }) => sum + byteLength(content), 0)).toBeLessThan(bytes)
          expect(history.slice(history.length - kept.length)).toEqual(kept)
        },
      ),
    )
    fc.assert(
      fc.property(otherParts, (part) => {
        expect(byteLength(promptText([part]))).toBeGreaterThan(0)
      }),
    )
  })

  it('counts in a transcript with all that is stored of it, a picture with its data', () => {
    const picture = (length: number): Part => ({
      type: 'image',
      media_type: 'image/png',
      data: 'a'.repeat(length),
    })
    const said = (content: Part[]) => [{ role: 'user' as const, content }]
    expect(fitTranscript(said([picture(99_000)]))).toHaveLength(1)
    expect(fitTranscript(said([picture(100_000)]))).toEqual([])
    expect(historyOf(said([picture(10)]), 5_000).messages).toEqual([
      { role: 'user', content: [picture(10)], timestamp: 4 },
    ])
  })
})
