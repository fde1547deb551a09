/** Workers AI's errors: https://developers.cloudflare.com/workers-ai/platform/errors/ */

/**
 * Internal code -> HTTP status and description. 5006, 5021 and 5028 are not in the page's table, but in its replies; the
 * status of 5028 is a guess.
 */
export const ERRORS: Record<number, { status: number; description: string }> = {
  3003: { status: 400, description: 'Request is missing headers or body: body' },
  3006: { status: 413, description: 'Request is too large' },
  3007: { status: 408, description: 'Request timeout' },
  3008: { status: 408, description: 'Request was aborted' },
  3023: { status: 403, description: 'Service unavailable for account' },
  3036: {
    status: 429,
    description:
      "You have used up your daily free allocation of 10,000 neurons. Please upgrade to Cloudflare's Workers Paid plan if you would like to continue usage.",
  },
  3039: { status: 400, description: 'Finetune is missing required files' },
  3040: { status: 429, description: 'Capacity temporarily exceeded, please try again.' },
  3041: { status: 403, description: 'The account is not allowed to access this model' },
  3042: { status: 404, description: 'The model name is invalid' },
  5004: { status: 400, description: 'Invalid data type for base64 input' },
  5005: { status: 405, description: 'The model does not support LoRa inference' },
  5006: { status: 400, description: 'Error: the input does not match the schema of the model' },
  5007: { status: 400, description: 'No such model or task' },
  5016: { status: 403, description: 'User has not agreed to Llama3.2 model terms' },
  5018: { status: 403, description: 'The account is not allowed to access this model' },
  5019: { status: 405, description: 'Request trying to use deprecated SDK version' },
  5028: {
    status: 410,
    description: 'This model was deprecated on 2026-05-30. Please use an alternative model.',
  },
  5035: { status: 403, description: 'This model requires the Workers Paid plan.' },
  5021: { status: 400, description: 'The tokens exceeded this model context window limit' },
}

/** As the binding throws it: a plain Error, its internal code and nothing else in the message. */
export class InferenceUpstreamError extends Error {
  override readonly name = 'InferenceUpstreamError'
  readonly #code: number

  constructor(code: number, description: string = ERRORS[code]?.description ?? 'Unknown internal error') {
    super(`${code}: ${description}`)
    this.#code = code
  }

  /** For the REST API. A private field: whoever catches the error sees its message only, as with the binding. */
  static codeOf(error: InferenceUpstreamError): number {
    return error.#code
  }
}
