/** The form of an answer that a request asks for. */
export type AnswerForm =
  /** any JSON object */
  | { type: 'json' }
  /** JSON that fits a JSON Schema. `strict` is passed on to providers that support it */
  | { type: 'schema'; name: string; schema: Record<string, unknown>; strict?: boolean }
