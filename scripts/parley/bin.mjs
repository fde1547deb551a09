#!/usr/bin/env node
/** Starts the command line, once the packages are known to be there. */
import '../installed.mjs'

await import('./cli.mjs')
