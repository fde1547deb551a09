/**
 * What Parley needs of a Workers AI client. The binding (`env.AI`) satisfies it, and so does the older SDK (`new
 * Ai(env.AI)` of @cloudflare/ai), which only forwards `run`.
 */
export interface AiRunner {
  run(model: string, inputs: Record<string, unknown>, options?: RunOptions): Promise<unknown>
}

export interface RunOptions {
  signal?: AbortSignal
  gateway?: { id: string }
  /** sent with the binding's call */
  extraHeaders?: Record<string, string>
}

/**
 * Runs a model until a signal aborts. Passing the signal on is not enough, since a binding may ignore it.
 * @throws what `run` rejects with, or the signal's reason
 */
export async function runUntil(
  signal: AbortSignal,
  ai: AiRunner,
  model: string,
  inputs: Record<string, unknown>,
  options: RunOptions = {},
): Promise<unknown> {
  signal.throwIfAborted()
  const running = ai.run(model, inputs, { ...options, signal })
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  try {
    return await Promise.race([running, aborted])
  } catch (error) {
    // Cancel a stream that arrives after the abort: nobody reads it.
    running.then((late) => (late instanceof ReadableStream ? late.cancel() : undefined)).catch(() => {})
    throw error
  }
}
