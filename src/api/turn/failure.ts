/** How a turn fails, as the protocols' encoders and error handlers see it. */
import { coded } from '../../errors'
import type { TurnEvent } from '../../turn/events'

/** @throws ApiError where this event is the error that the turn ended in */
export function throwFailure(event: TurnEvent): void {
  if (event.type === 'error') throw coded(event.code, event.status, event.message)
}
