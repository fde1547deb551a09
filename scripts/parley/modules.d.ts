declare module '@joplin/turndown-plugin-gfm' {
  import type TurndownService from 'turndown'
  export const strikethrough: TurndownService.Plugin
  export const taskListItems: TurndownService.Plugin
}

declare module 'html-encoding-sniffer' {
  /** Encoding of a page by the algorithm of the WHATWG HTML standard. */
  export default function sniff(
    bytes: Uint8Array,
    options?: { transportLayerEncodingLabel?: string | undefined; defaultEncoding?: string },
  ): string
}
