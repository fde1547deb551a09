import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { smallTalk } from '../../../src/models/extractive/small-talk'

describe('small talk', () => {
  it.each([
    ['hi', /^Hello!/],
    ['Hey there!', /^Hello!/],
    ['Good evening', /^Hello!/],
    ['Hello! Who are you?', /^I am the built-in answerer/],
    ['what can you do for me?', /^I am the built-in answerer/],
    ['what can I ask you?', /^I am the built-in answerer/],
    ['Is anybody there?', /^I am the built-in answerer/],
    ['Are you a real person?', /^I am the built-in answerer/],
    ['How are you doing today?', /^I am a program/],
    ['Thanks a lot, that helped!', /^You are welcome/],
    ['ok thanks', /^You are welcome/],
    ['bye', /^Goodbye!/],
    ['You are so stupid', /^I can only quote/],
    ['tell me a joke', /^I can only quote/],
    ['2+2', /^That is no question/],
    ['???', /^That is no question/],
  ])('%s', (said, reply) => {
    expect(smallTalk(said)).toMatch(reply)
  })

  it.each([
    'Hello! How long is history kept?',
    'thanks, and how do I delete it?',
    'What is a greeting card?',
    'Who are the directors?',
    'Are you open on Sundays?',
    'How are refunds paid?',
    'What can you do with a scoped key?',
    'What can I ask a support agent?',
    'Is there a help desk?',
    'status 404',
    'こんにちは、料金はいくらですか',
  ])('%s is none', (asked) => {
    expect(smallTalk(asked)).toBeUndefined()
  })

  it('is told apart in whatever is typed', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(['string', 'undefined']).toContain(typeof smallTalk(text))
      }),
    )
  })
})
