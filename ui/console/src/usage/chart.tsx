/** Bars, one a day. What they say stands in a table too, for whoever does not see them. */
import { count } from '../parts/format'
import { ceiling } from './sums'

const WIDTH = 900
const HEIGHT = 220
const LEFT = 46
const BOTTOM = 24
const TOP = 12
const GAP = 0.3

interface ChartProps {
  title: string
  values: { day: string; value: number }[]
  /** how a number is written */
  shown?: (value: number) => string
}

export function Chart({ title, values, shown = count }: ChartProps) {
  const top = ceiling(Math.max(...values.map(({ value }) => value)))
  const step = (WIDTH - LEFT) / values.length
  const heightOf = (value: number) => (value / top) * (HEIGHT - TOP - BOTTOM)
  const every = Math.ceil(values.length / 8)
  return (
    <figure class="figure">
      <svg class="chart" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
        {[0, 0.5, 1].map((part) => {
          const y = HEIGHT - BOTTOM - heightOf(top * part)
          return (
            <g key={part}>
              <line x1={LEFT} x2={WIDTH} y1={y} y2={y} />
              <text x={LEFT - 8} y={y + 4} text-anchor="end">
                {shown(top * part)}
              </text>
            </g>
          )
        })}
        {values.map(({ day, value }, index) => (
          <g key={day}>
            <title>{`${day}: ${shown(value)}`}</title>
            <rect
              class="bar-back"
              x={LEFT + index * step}
              y={TOP}
              width={step}
              height={HEIGHT - TOP - BOTTOM}
            />
            <rect
              class="bar-value"
              x={LEFT + (index + GAP / 2) * step}
              y={HEIGHT - BOTTOM - heightOf(value)}
              width={step * (1 - GAP)}
              height={heightOf(value)}
              rx={Math.min(3, step / 6)}
            />
            {index % every === 0 && (
              <text x={LEFT + (index + 0.5) * step} y={HEIGHT - 6} text-anchor="middle">
                {day.slice(5)}
              </text>
            )}
          </g>
        ))}
      </svg>
      <table class="hidden">
        <caption>{title}</caption>
        <tbody>
          {values
            .filter(({ value }) => value > 0)
            .map(({ day, value }) => (
              <tr key={day}>
                <th scope="row">{day}</th>
                <td>{shown(value)}</td>
              </tr>
            ))}
        </tbody>
      </table>
    </figure>
  )
}
