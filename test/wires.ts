/** The wires of the reference (scripts/docs/reference.mjs), for tests that run where there are no files. */
import chat from '../scripts/docs/wires/chat.yaml?raw'
import opensearch from '../scripts/docs/wires/opensearch.yaml?raw'
import typesense from '../scripts/docs/wires/typesense.yaml?raw'
import { wireOf } from '../scripts/docs/wires/wire.mjs'

export const wires = [typesense, opensearch, chat].map(wireOf)
