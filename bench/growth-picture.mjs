/** Draws waits against documents as an SVG: both axes are logarithmic, so a straight line is a power. */

const [WIDTH, HEIGHT] = [760, 440]
const FRAME = { left: 64, right: 250, top: 24, bottom: 48 }
const COLOURS = ['#2563eb', '#dc2626', '#059669', '#9333ea', '#d97706', '#0891b2', '#be185d', '#4d7c0f']
const DASHES = ['', '6 3']
/** pixels between the names of two lines */
const LINE_HEIGHT = 15

const decades = (values) => {
  const low = Math.floor(Math.log10(Math.min(...values)))
  const high = Math.ceil(Math.log10(Math.max(...values)))
  return Array.from({ length: Math.max(1, high - low) + 1 }, (_, at) => low + at)
}

const escaped = (text) => text.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`)

const told = (value) => (value >= 1 ? value.toLocaleString('en') : String(value))

/** Names that would cover each other move down. @param ys where each wants to be */
function spread(ys) {
  const order = [...ys.keys()].sort((a, b) => ys[a] - ys[b])
  const places = []
  let next = Number.NEGATIVE_INFINITY
  for (const at of order) {
    places[at] = Math.max(ys[at], next)
    next = places[at] + LINE_HEIGHT
  }
  return places
}

/**
 * @param {{ name: string, points: [documents: number, milliseconds: number][] }[]} lines
 * @returns {string}
 */
export function drawGrowth(lines) {
  const across = decades(lines.flatMap(({ points }) => points.map(([documents]) => documents)))
  const up = decades(lines.flatMap(({ points }) => points.map(([, milliseconds]) => milliseconds)))
  const scale = (ticks, from, to) => (value) =>
    from + ((Math.log10(value) - ticks[0]) / (ticks.at(-1) - ticks[0])) * (to - from)
  const x = scale(across, FRAME.left, WIDTH - FRAME.right)
  const y = scale(up, HEIGHT - FRAME.bottom, FRAME.top)
  const grid = [
    ...across.map((tick) => {
      const at = x(10 ** tick).toFixed(1)
      return `<path class="grid" d="M${at} ${FRAME.top}V${HEIGHT - FRAME.bottom}"/><text x="${at}" y="${HEIGHT - FRAME.bottom + 18}" text-anchor="middle">${told(10 ** tick)}</text>`
    }),
    ...up.map((tick) => {
      const at = y(10 ** tick).toFixed(1)
      return `<path class="grid" d="M${FRAME.left} ${at}H${WIDTH - FRAME.right}"/><text x="${FRAME.left - 8}" y="${Number(at) + 4}" text-anchor="end">${told(10 ** tick)}</text>`
    }),
  ]
  const places = spread(lines.map(({ points }) => y(points.at(-1)[1])))
  const drawn = lines.map(({ name, points }, index) => {
    const colour = COLOURS[index % COLOURS.length]
    const dash = DASHES[Math.floor(index / COLOURS.length) % DASHES.length]
    const path = points.map(
      ([documents, wait], at) => `${at ? 'L' : 'M'}${x(documents).toFixed(1)} ${y(wait).toFixed(1)}`,
    )
    const [end, last] = [x(points.at(-1)[0]), y(points.at(-1)[1])]
    return [
      `<path d="${path.join('')}" fill="none" stroke="${colour}" stroke-width="2"${dash && ` stroke-dasharray="${dash}"`}/>`,
      ...points.map(
        ([documents, wait]) =>
          `<circle cx="${x(documents).toFixed(1)}" cy="${y(wait).toFixed(1)}" r="3" fill="${colour}"/>`,
      ),
      `<path d="M${end.toFixed(1)} ${last.toFixed(1)}L${(end + 14).toFixed(1)} ${places[index].toFixed(1)}" stroke="${colour}" fill="none"/>`,
      `<text x="${(end + 18).toFixed(1)}" y="${(places[index] + 4).toFixed(1)}" style="fill:${colour}">${escaped(name)}</text>`,
    ].join('')
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="Milliseconds a search takes, by the number of documents">
<style>svg{background:#fff}text{font:12px system-ui,sans-serif;fill:#374151}.grid{stroke:#e5e7eb;fill:none}</style>
${[...grid, ...drawn].join('\n')}
<text x="${(FRAME.left + WIDTH - FRAME.right) / 2}" y="${HEIGHT - 10}" text-anchor="middle">documents</text>
<text x="16" y="${(FRAME.top + HEIGHT - FRAME.bottom) / 2}" text-anchor="middle" transform="rotate(-90 16 ${(FRAME.top + HEIGHT - FRAME.bottom) / 2})">p50 of a search in ms</text>
</svg>
`
}
