/** How a turn fails, as the protocols' encoders and error handlers see it. */

import { ApiError, type Failure } from '../../errors'
import type { TurnEvent } from '../../turn/events'

/** Why a turn failed. */
export interface TurnFault extends Failure {
  /** whether a model's provider failed, through no fault of the request */
  upstream?: boolean
}

/** A turn that failed before its answer began. */
export class TurnFailure extends ApiError {
  constructor(
    status: number,
    message: string,
    readonly upstream: boolean,
  ) {
    super(status, message)
  }
}

/** @throws TurnFailure where this event is the error that the turn ended in */
export function throwFailure(event: TurnEvent): void {
  if (event.type === 'error') throw new TurnFailure(event.status, event.message, event.upstream === true)
}
