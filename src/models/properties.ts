/** Checks a model's properties, with each provider's own messages. */
import { ApiError } from '../errors'

/** @throws ApiError 400 `missing` when the property is absent, `wrong` when it is not a string */
export function requireString(
  config: Record<string, unknown>,
  property: string,
  missing: string,
  wrong: string,
): void {
  if (config[property] === undefined) throw new ApiError(400, missing)
  if (typeof config[property] !== 'string') throw new ApiError(400, wrong)
}

/** @throws ApiError 400 `wrong` when the property is present and not a string */
export function allowString(config: Record<string, unknown>, property: string, wrong: string): void {
  if (config[property] !== undefined && typeof config[property] !== 'string') throw new ApiError(400, wrong)
}

/** A model's name without its namespace: all after the first slash. */
export const modelId = (name: string): string => name.slice(name.indexOf('/') + 1)

export const withoutTrailingSlash = (url: string): string => (url.endsWith('/') ? url.slice(0, -1) : url)

export const withLeadingSlash = (path: string): string => (path.startsWith('/') ? path : `/${path}`)
