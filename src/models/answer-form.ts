/** The form that an answer has to have, where a request asks for one. */
export type AnswerForm =
  /** any JSON object */
  | { type: 'json' }
  /** JSON that fits a JSON Schema. `strict` is the caller's word to a provider that knows it */
  | { type: 'schema'; name: string; schema: Record<string, unknown>; strict?: boolean }
