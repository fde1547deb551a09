/**
 * Embeds a first question beside the call to its conversation. The collection's object begins the call to the embedder, and the
 * search that the conversation sends waits for that call (search/run/embedded-ahead.ts). So the search costs no hop more than
 * one without an embedder.
 */
import { waitUntil } from 'cloudflare:workers'
import { logFailure } from '../errors'
import { textOf } from '../lib/parts'
import { ownObject } from '../registry/engines'
import type { AskRequest } from '../turn/request'
import { asked } from '../turn/retrieve'
import { mayLeanOn } from '../turn/run'

/** The searches of a turn that run at once. */
const MOST = 4

/**
 * @param request one that was admitted: its key, its budget and its rate were checked
 * @param isNew whether its conversation surely begins now, although it has a name
 */
export function embedAhead(env: Cloudflare.Env, request: AskRequest, isNew: boolean): void {
  const continues = request.continues && !isNew
  // A follow-up looks back and is rewritten while its own wording is embedded, so it need not begin sooner.
  if ((continues && !request.named) || mayLeanOn({ ...request, continues })) return
  const question = textOf(request.question)
  for (const { place, params, isEmbedded, error } of request.searches.slice(0, MOST)) {
    if (!isEmbedded || !place || error) continue
    const embedding = ownObject(env, place).embedAhead(asked(params, question, undefined))
    waitUntil(
      embedding.catch((error) => {
        // An object of the version before does not have the method, and embeds with the search.
        if (!(error instanceof TypeError))
          logFailure('a question was not embedded ahead', error, { requestId: request.requestId })
      }),
    )
  }
}
