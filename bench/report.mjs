/** Figures as the README quotes them: percentiles, and ratios against a baseline of the same run. */

export const percentile = (values, p) => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor((p / 100) * sorted.length))]
}

export const median = (values) => percentile(values, 50)

const rows = []

/** @param better 'higher' or 'lower': how `ratio` stands to `aim` when the aim is met */
export function report({ what, parley, baseline, ratio, aim, better }) {
  rows.push({ what, parley, baseline, ratio, aim, better })
  const met = better === 'higher' ? ratio >= aim : ratio <= aim
  const bound = better === 'higher' ? 'at least' : 'at most'
  console.log(
    `${what}\n  parley ${parley}   baseline ${baseline}   ratio ${ratio.toFixed(2)} (aim: ${bound} ${aim})${met ? '' : '   MISSED'}`,
  )
}

/** The table of all reports so far, in Markdown. */
export function table() {
  const lines = ['| what | Parley | baseline | ratio | aim |', '| --- | --- | --- | --- | --- |']
  for (const { what, parley, baseline, ratio, aim, better } of rows) {
    lines.push(
      `| ${what} | ${parley} | ${baseline} | ${ratio.toFixed(2)} | ${better === 'higher' ? '≥' : '≤'} ${aim} |`,
    )
  }
  return lines.join('\n')
}
