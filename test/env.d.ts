declare namespace Cloudflare {
  /** Types `exports.default` of cloudflare:workers. */
  interface GlobalProps {
    mainModule: typeof import('../src/index')
  }
  interface Env {
    TEST_MIGRATIONS: import('cloudflare:test').D1Migration[]
    /** how many cases a fuzz test tries; '' for the default */
    FUZZ_CASES: string
    /** '1' in a run of `npm run test:all`, '' otherwise */
    FULL: string
  }
}

/** The text of a file. */
declare module '*?raw' {
  const text: string
  export default text
}
