/**
 * What is asked of a Workers AI client. The binding (`env.AI`) satisfies it, and so does an instance of the
 * older SDK (`new Ai(env.AI)` of @cloudflare/ai), which only passes `run` on.
 */
export interface AiRunner {
  run(
    model: string,
    inputs: Record<string, unknown>,
    options?: { signal?: AbortSignal; gateway?: { id: string } },
  ): Promise<unknown>
}
