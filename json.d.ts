/** `JSON.parse` gives what somebody wrote, which may be anything: code has to check it before use. */
interface JSON {
  parse(text: string): unknown
}
