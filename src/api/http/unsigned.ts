/** Unsigned integers in a query string. */
import { ApiError } from '../../errors'

/** @returns 0 for none @throws ApiError 400 with this message */
export function unsigned(value: string | undefined, message: string): number {
  if (value === undefined) return 0
  if (!/^\d{1,9}$/.test(value)) throw new ApiError(400, message)
  return Number(value)
}
