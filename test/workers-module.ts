/** What unit tests get of the runtime's module `cloudflare:workers`: in Node, promises go on by themselves. */
export const waitUntil = (promise: Promise<unknown>): void => void promise.catch(() => {})
