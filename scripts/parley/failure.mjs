/** How the command line fails: in a sentence that says what to do, and with an exit code that a script can tell apart. */

/** Exit codes. 130 is the shell's own for Ctrl-C. */
export const EXIT = {
  /** a fault of the command line itself */
  fault: 1,
  /** a wrong option or argument */
  usage: 2,
  /** nobody answers at the address */
  unreachable: 3,
  /** the server refuses the key */
  refused: 4,
  /** the server refuses the request */
  rejected: 5,
  /** some documents were not imported, or some checks failed; the rest is done */
  partial: 6,
}

/** A failure that the user can act on. */
export class Failure extends Error {
  /**
   * @param {number} code one of EXIT
   * @param {string} message
   */
  constructor(code, message) {
    super(message)
    this.code = code
  }
}
