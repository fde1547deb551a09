/** Bars, one a day. What they say stands in a table too, for whoever does not see them. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { count, day as shownDay } from '../parts/format'
import { ceiling } from './sums'

/** pixels for the name of a day */
const LABEL = 84
const HEIGHT = 220
const LEFT = 46
const BOTTOM = 24
const TOP = 12
const GAP = 0.3
/** A page that is hidden or folded gives no room at all; bars have a width even so. */
const NARROWEST = 200

interface ChartProps {
  title: string
  values: { day: string; value: number }[]
  /** how a number is written */
  shown?: (value: number) => string
}

export function Chart({ title, values, shown = count }: ChartProps) {
  const figure = useRef<HTMLElement>(null)
  const [width, setWidth] = useState(900)
  // Drawn as wide as there is room: letters keep their size on a phone.
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) =>
      setWidth(Math.max(NARROWEST, entry?.contentRect.width ?? 0)),
    )
    if (figure.current) observer.observe(figure.current)
    return () => observer.disconnect()
  }, [])
  const top = ceiling(Math.max(...values.map(({ value }) => value)))
  const step = (width - LEFT) / values.length
  const heightOf = (value: number) => (value / top) * (HEIGHT - TOP - BOTTOM)
  const every = Math.ceil((values.length * LABEL) / (width - LEFT))
  return (
    <figure ref={figure} class="figure">
      <svg class="chart" viewBox={`0 0 ${width} ${HEIGHT}`} aria-hidden="true">
        {(top === 1 ? [0, 1] : [0, 0.5, 1]).map((part) => {
          const y = HEIGHT - BOTTOM - heightOf(top * part)
          return (
            <g key={part}>
              <line x1={LEFT} x2={width} y1={y} y2={y} />
              <text x={LEFT - 8} y={y + 4} text-anchor="end">
                {shown(top * part)}
              </text>
            </g>
          )
        })}
        {values.map(({ day, value }, index) => (
          <g key={day}>
            <title>{`${shownDay(day)}: ${shown(value)}`}</title>
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
                {shownDay(day)}
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
