/** What webhooks are told of. This file imports nothing: scripts/openapi.mjs reads it as it is. */
export const EVENTS = [
  'turn.finished',
  'feedback',
  'gaps.weekly',
  'import.finished',
  'handover.requested',
] as const

export type WebhookEvent = (typeof EVENTS)[number]
