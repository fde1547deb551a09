/**
 * What a key that is bound to an assistant may spend in a day where its maker does not say. This file imports nothing:
 * scripts/costs reads it as it is, and docs/keys.md states the bill that follows.
 */
export const PAGE_BUDGET = { turns_per_day: 1_000, tokens_per_day: 5_000_000 } as const
