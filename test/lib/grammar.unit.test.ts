import { expect, test } from 'vitest'
import { grammarsOf } from '../../src/lib/grammar'

const localesOf = (text: string, fewest?: number) =>
  grammarsOf(text.toLowerCase().split(' '), fewest).map(({ locale }) => locale)

test.each([
  ['wie erstelle ich einen neuen kernel', ['de']],
  ['comment est ce que je change la couleur', ['fr']],
  ['como cambio la zona horaria para mi', ['es']],
  ['dove sono le chiavi della casa', ['it']],
  ['onde posso mudar a senha do meu email', ['pt']],
  ['hoe kan ik het wachtwoord van mijn account wijzigen', ['nl']],
  ['how do i create a new kernel', []],
  ['who was in the die casting hall at an hour', []],
  ['hotels in los angeles', []],
  ['de tarte tatin', []],
])('the language of "%s"', (text, locales) => {
  expect(localesOf(text)).toEqual(locales)
})

test('words that several languages have are of each of them', () => {
  expect(localesOf('que para')).toEqual(['es', 'pt'])
})

test('a longer text may need more different words', () => {
  const text = 'der hund und der hund und der hund'
  expect(localesOf(text, 2)).toEqual(['de'])
  expect(localesOf(text, 3)).toEqual([])
})
