/** The types of a turn mention the Worker's bindings. The console has none of them. */
declare namespace Cloudflare {
  type Env = Record<string, unknown>
}
