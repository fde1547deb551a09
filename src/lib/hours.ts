/** Office hours: on which days of the week, from when to when, and where. */
export const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const

export interface Hours {
  days: (typeof DAYS)[number][]
  /** `09:00` */
  from: string
  /** later than `from`: `17:30`, or `24:00` */
  to: string
  /** as the IANA names it: `Europe/Berlin` */
  time_zone: string
}

/** Whether a time zone is known here. */
export function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }) !== undefined
  } catch {
    return false
  }
}

/** Whether it is office hours. @param now milliseconds since 1970 */
export function isWithin({ days, from, to, time_zone: timeZone }: Hours, now: number): boolean {
  const format = new Intl.DateTimeFormat('en-GB', {
    timeZone,
    weekday: 'short',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  })
  const parts = Object.fromEntries(format.formatToParts(now).map(({ type, value }) => [type, value]))
  const time = `${parts.hour}:${parts.minute}`
  return days.some((day) => day === parts.weekday?.toLowerCase()) && time >= from && time < to
}
