/** The text that a vector is made from. */
import { ApiError } from '../../errors'
import type { FieldPlan, Plan } from '../schema/plan'
import { leaves } from '../schema/values'
import type { Draft } from './document'

/** The text that a document's vector is made from; undefined when all of its sources are missing. */
export function embeddingText(plan: FieldPlan, sources: Plan, draft: Draft): string | undefined {
  const { embed } = plan.field
  const values: string[] = []
  for (const name of embed?.from ?? []) {
    const path = sources.fields.find((field) => field.name === name)?.path
    for (const { value } of leaves(draft, name, path)) {
      for (const part of Array.isArray(value) ? value : [value])
        if (typeof part === 'string') values.push(part)
    }
  }
  if (values.length === 0) return undefined
  const prefix = embed?.model_config.indexing_prefix?.trimEnd() ?? ''
  return (prefix === '' ? '' : `${prefix} `) + values.map((value) => `${value} `).join('')
}

/**
 * Checks that a new document has the sources of its vector.
 * @throws ApiError 400
 */
export function requireSources(plan: FieldPlan, sources: Plan, draft: Draft): void {
  for (const name of plan.field.embed?.from ?? []) {
    const source = sources.fields.find((field) => field.name === name)
    if (source === undefined) {
      throw new ApiError(400, `Field \`${plan.name}\` has invalid fields to create embeddings from.`)
    }
    if (!source.field.optional && leaves(draft, name, source.path).length === 0) {
      throw new ApiError(400, `Field \`${name}\` is needed to create embedding.`)
    }
  }
  if (!plan.field.optional && embeddingText(plan, sources, draft) === undefined) {
    throw new ApiError(
      400,
      `No valid fields found to create embedding for \`${plan.name}\`, please provide at least one valid field or make the embedding field optional.`,
    )
  }
}
