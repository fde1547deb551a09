/** What the cron trigger does for sources. */
import { logFailure } from '../errors'
import { sourceObject } from './object'
import { listSources } from './source'

/** Sources that are read in one minute. */
const AT_ONCE = 3

/** Reads some pages of the sources that are due, those first that wait for the longest time. */
export async function readDueSources(env: Cloudflare.Env): Promise<void> {
  const due = (await listSources(env)).filter(({ next_run_at }) => next_run_at <= Date.now())
  due.sort((a, b) => a.next_run_at - b.next_run_at)
  await Promise.all(
    due.slice(0, AT_ONCE).map(({ name }) =>
      sourceObject(env, name)
        .read()
        .catch((error) => logFailure(`source ${name} is left for the next minute`, error)),
    ),
  )
}
