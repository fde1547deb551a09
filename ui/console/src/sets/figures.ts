/** Figures of a run by the names that people know. */
import { figure } from '../../../../scripts/parley/eval/outcomes.mjs'
import { duration } from '../parts/format'

const NAMES: Record<string, string> = {
  questions: 'Questions',
  errors: 'Errors',
  recall_5: 'Recall at 5',
  recall_10: 'Recall at 10',
  ndcg_5: 'nDCG at 5',
  ndcg_10: 'nDCG at 10',
  citations_matched: 'Right document cited',
  f1: 'F1',
  declined_answerable: 'Declined, though answerable',
  declined_unanswerable: 'Declined, as expected',
  warned_answerable: 'With a warning, though answerable',
  warned_unanswerable: 'With a warning, and unanswerable',
  ms: 'Time of an answer',
}

/** The name of a figure, or with a second argument its value. */
export function shownFigure(name: string, ...value: [] | [number | undefined]): string {
  if (value.length === 0) return NAMES[name] ?? name
  return name === 'ms' && value[0] !== undefined ? duration(value[0]) : figure(name, value[0])
}
