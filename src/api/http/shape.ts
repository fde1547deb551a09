/** Checks what a client sent against a schema. */
import * as v from 'valibot'
import { ApiError } from '../../errors'

/**
 * @param whole what the message calls the value itself
 * @throws ApiError 400 that names the place of the first fault
 */
export function shaped<S extends v.GenericSchema>(
  schema: S,
  value: unknown,
  whole = 'body',
): v.InferOutput<S> {
  const parsed = v.safeParse(schema, value, { abortEarly: true })
  if (parsed.success) return parsed.output
  const [issue] = parsed.issues
  throw new ApiError(400, `\`${v.getDotPath(issue) ?? whole}\`: ${issue.message}`)
}
