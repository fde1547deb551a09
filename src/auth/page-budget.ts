/**
 * The default daily budget of a key that is bound to an assistant. This file has no imports because scripts/costs
 * reads it as it is. docs/keys.md states the resulting bill.
 */
export const PAGE_BUDGET = { turns_per_day: 1_000, tokens_per_day: 5_000_000 } as const
