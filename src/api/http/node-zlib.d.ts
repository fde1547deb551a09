/**
 * The used part of `node:zlib`, which the runtime includes. With the types of all of Node, sources could use modules
 * that a Worker should not.
 */
declare module 'node:zlib' {
  /** A Duplex of Node: bytes of gzip in, inflated ones out, in pieces of `chunkSize` bytes at most. */
  export interface Gunzip extends AsyncIterable<Uint8Array> {
    readonly destroyed: boolean
    /** @returns whether it takes more at once; otherwise it emits `drain` when it does */
    write(bytes: Uint8Array): boolean
    end(): void
    destroy(error?: Error): void
    once(event: 'drain' | 'close', listener: () => void): this
  }

  export function createGunzip(options: {
    chunkSize: number
    readableHighWaterMark: number
    writableHighWaterMark: number
  }): Gunzip
}
