/** Converts the event with which a turn failed to the error that its façade handles. */
import { coded } from '../../errors'
import type { TurnEvent } from '../../turn/events'

/** @throws ApiError if this event is the turn's error */
export function throwFailure(event: TurnEvent): void {
  if (event.type === 'error') throw coded(event.code, event.status, event.message)
}
