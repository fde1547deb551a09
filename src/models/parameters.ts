/** The properties of a model that are the same for every provider. */
import { ApiError } from '../errors'
import { LONGEST_SILENCE } from './call'
import { checkHeaders } from './headers'
import { checkSampling } from './sampling'

/** @throws ApiError 400 saying what a property has to be */
export function checkParameters(config: Record<string, unknown>): void {
  checkSampling(config)
  const { timeout } = config
  if (timeout !== undefined && !(typeof timeout === 'number' && timeout > 0 && timeout <= LONGEST_SILENCE)) {
    throw new ApiError(
      400,
      `Property \`timeout\` is not a number of seconds, more than 0 and ${LONGEST_SILENCE} at most.`,
    )
  }
  checkHeaders(config.headers)
}
