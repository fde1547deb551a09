/** Reads the body of a reply as text, piece by piece. */

/** @throws what the platform throws if the body breaks off */
export async function* readText(response: Response): AsyncGenerator<string, void, undefined> {
  if (!response.body) return
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  try {
    while (true) {
      const { done, value } = await reader.read()
      if (done) return
      if (value !== '') yield value
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}
