/** Reads the values of search parameters, which all come as text. */
import { ApiError } from '../../errors'
import { splitOutside } from '../fragment'

/** The parts of a list between commas; commas in brackets and backticks do not split. */
export const list = (text: string | undefined): string[] =>
  splitOutside(text ?? '', ',').filter((part) => part !== '')

/** @throws ApiError 400 */
export function unsigned(name: string, text: string): number {
  if (!/^\d{1,10}$/.test(text.trim())) {
    throw new ApiError(400, `Parameter \`${name}\` must be an unsigned integer.`)
  }
  return Number(text)
}
