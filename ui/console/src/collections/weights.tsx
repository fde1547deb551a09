/** How much each field counts in a search, and how much meaning counts against words. */
import { useEffect, useState } from 'preact/hooks'
import { Button } from '../parts/button'
import { SelectField, TextField } from '../parts/form'
import { share } from '../parts/format'
import { MOST_WEIGHT, type Query } from './query'
import { type Collection, textFields, vectorField } from './wire'

interface WeightsProps {
  collection: Collection
  query: Query
  /** @param to what changes of the query as it is then */
  change: (to: (query: Query) => Partial<Query>) => void
}

const SHARES = ['0', '0.2', '0.4', '0.6', '0.8', '1']

export function Weights({ collection, query: { by, weights, alpha }, change }: WeightsProps) {
  const isHybrid = vectorField(collection) !== undefined && by === 'both'
  const fields = by === 'meaning' && vectorField(collection) ? [] : textFields(collection)
  if (fields.length === 0) return null
  const isSet = weights.size > 0 || alpha !== ''
  const weigh = (name: string, weight: number) =>
    change((query) => {
      const next = new Map(query.weights)
      if (weight === 1) next.delete(name)
      else next.set(name, weight)
      return { weights: next }
    })
  return (
    <details class="weights" open={isSet}>
      <summary>Weights</summary>
      <div class="weights-fields line">
        {fields.map((name) => (
          <Weight
            key={name}
            name={name}
            value={weights.get(name) ?? 1}
            set={(weight) => weigh(name, weight)}
          />
        ))}
        {isHybrid && (
          <SelectField
            label="meaning"
            value={alpha}
            options={[
              ['', 'Default'],
              ...[...new Set([...SHARES, alpha])]
                .filter(Boolean)
                .map((each) => [each, share(Number(each))] as const),
            ]}
            change={(value) => change(() => ({ alpha: value }))}
          />
        )}
        {isSet && (
          <Button
            label="Reset the weights"
            onClick={() => change(() => ({ weights: new Map(), alpha: '' }))}
          />
        )}
      </div>
      <p class="hint">
        The larger a field's weight, the more its words count. A field of weight 0 is not searched for words.
        {isHybrid && ' The percentage is the share of meaning in the score; words have the rest.'}
      </p>
    </details>
  )
}

interface WeightProps {
  name: string
  value: number
  set: (weight: number) => void
}

/** What is typed stays as it is typed, even if it is no weight, while hits come and the page is drawn again. */
function Weight({ name, value, set }: WeightProps) {
  const [text, setText] = useState(String(value))
  useEffect(() => setText((typed) => (weightOf(typed) === value ? typed : String(value))), [value])
  return (
    <TextField
      label={name}
      type="number"
      min="0"
      max={String(MOST_WEIGHT)}
      value={text}
      change={(typed) => {
        setText(typed)
        set(weightOf(typed))
      }}
      onBlur={() => setText(String(value))}
    />
  )
}

/** The weight that a text stands for; 1 for none. */
function weightOf(text: string): number {
  const weight = text.trim() === '' ? 1 : Math.round(Number(text))
  return Number.isNaN(weight) ? 1 : Math.min(MOST_WEIGHT, Math.max(0, weight))
}
