/** The part of the library that `models/bedrock/index.ts` loads when it needs it. The rest of the library stays out of the bundle. */
export { EventStreamCodec } from '@smithy/core/event-streams'
