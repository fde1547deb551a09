/** POST /chat and /chat/stream: a question in any dialect of the AI Chat Protocol. */
import type { Access } from '../../auth/access'
import { chatOf } from '../../conversation/ask'
import { once } from '../../lib/once'
import { type Assistant, DEFAULT_ASSISTANT } from '../../registry/assistants'
import { enter, namedUser } from '../http/admit-turn'
import { admitAsker, openAssistant } from '../http/chat-names'
import { canRerank, searchesBy } from '../http/plan'
import type { OpenCall } from '../http/router'
import { type AssistantAnswering, askAssistant, type Changes } from '../shared/assistant'
import { requireOwn } from '../shared/foreign'
import { overrideRights, planOverrides } from '../shared/overrides'
import { streamAnswer, wholeAnswer } from '../shared/stream'
import {
  asRecord,
  dialectOf,
  type ErrorForm,
  errorFormOf,
  isVersion,
  type Signals,
  VERSIONS,
} from './dialect'
import { encodeAnswer, HEARTBEAT, lineEncoder, pieceWording, type Writing } from './encoder'
import { errorResponse, FieldError, faultOf } from './errors'
import { readChat, readChatBody, sessionIn } from './request'
import { WORDS } from './words'

const STREAM_HEADERS = {
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
}

/** Answers a question, or replies with an error in the caller's dialect. Never throws. */
export async function chat(call: OpenCall, streaming: boolean): Promise<Response> {
  const signals: Signals = { ...signalsOf(call), body: {} }
  try {
    return await converse(call, streaming, signals)
  } catch (error) {
    return errorResponse(faultOf(error, call.record), formOf(call, signals))
  }
}

/** The error for a request whose body was not read. */
export const refuse = (error: unknown, call: OpenCall): Response =>
  errorResponse(faultOf(error, call.record), formOf(call, { ...signalsOf(call), body: {} }))

const formOf = ({ request }: OpenCall, signals: Signals): ErrorForm =>
  errorFormOf(signals, new URL(request.url).searchParams.get('error_format'))

/** The overrides that had no effect on the searches: those that need a reranking model, and an unknown field of vectors. */
function idleOf(env: Cloudflare.Env, changes: Changes, { retrievals }: AssistantAnswering): string[] {
  const { rerank, minimumRerankScore, vectorField } = changes
  return [
    ...(rerank && !canRerank(env) ? ['semantic_ranker'] : []),
    ...(minimumRerankScore !== undefined && !canRerank(env) ? ['minimum_reranker_score'] : []),
    ...(vectorField !== undefined && !searchesBy(vectorField, retrievals) ? ['vector_fields'] : []),
  ]
}

/** Opens the assistant. Where that takes a query, the body is read meanwhile and its conversation looked up. */
async function openMeanwhile(
  call: OpenCall,
  access: Access,
  readBody: () => ReturnType<typeof readChatBody>,
): Promise<Assistant> {
  let reading: Promise<unknown> | undefined
  const look = ({ json }: { json: unknown }) =>
    void call.prefetch.look({ conversationId: access.embedded.conversation_id ?? sessionIn(json) })
  try {
    return await openAssistant(call, access, call.path.assistant ?? DEFAULT_ASSISTANT, () => {
      // A body that cannot be read is refused later.
      reading = readBody().then(look, () => {})
    })
  } catch (error) {
    // A body that is being read must be read to its end before the answer (discardBody).
    await reading
    throw error
  }
}

/** @param signals gets the body as soon as it is read, so that errors have the right form */
async function converse(call: OpenCall, streaming: boolean, signals: Signals): Promise<Response> {
  const { env, request } = call
  await enter(request)
  const access = await admitAsker(call)
  requireVersion(call)
  const readBody = once(() => readChatBody(request))
  const assistant = await openMeanwhile(call, access, readBody)
  const { json, files, text } = await readBody()
  requireOwn(json, 'ai-chat', assistant.name)
  signals.body = asRecord(json)
  const dialect = dialectOf(signals)
  const asked = readChat(json, dialect)
  const isAdmin = access.owner === 'admin'
  if (asked.instructions.length > 0 && !isAdmin) {
    const message = '`messages`: the role system is for the admin key.'
    throw new FieldError(400, 'forbidden_role', message, 'messages')
  }
  const rights = overrideRights(assistant, isAdmin)
  const { changes, suggests, ignored, unknown } = planOverrides(asked.overrides, rights)
  const append = [...(changes.prompt?.append ?? []), ...asked.instructions]
  const words = WORDS[dialect]
  const stream = streaming || asked.stream

  const answering = await askAssistant({
    ...call,
    access,
    assistant,
    question: asked.question,
    chat: chatOf(asked.session),
    transcript: asked.transcript,
    files,
    changes: { ...changes, prompt: { ...changes.prompt, append } },
    suggests,
    labels: true,
    words: stream ? pieceWording(words) : undefined,
    protocol: 'ai-chat',
    user: namedUser(request) ?? asked.user,
    bodyText: text,
  })
  const writing: Writing = {
    words,
    errorForm: formOf(call, signals),
    inlineSuggestions: words.inlineSuggestions === true || assistant.followup_style === 'inline',
    contextSession: asked.contextSession,
    assistant,
    modes: answering.retrievals.map(({ mode }) => mode),
    ignored: [...new Set([...ignored, ...answering.dropped, ...idleOf(env, changes, answering)])],
    unknown,
  }
  if (!stream) return wholeAnswer(answering, (turn) => encodeAnswer(turn, writing))
  return streamAnswer(answering, lineEncoder(writing), {
    headers: { ...STREAM_HEADERS, 'content-type': words.mediaType },
    opensAt: 'found',
    heartbeat: HEARTBEAT,
  })
}

function signalsOf({ request: { headers }, path }: OpenCall): Omit<Signals, 'body'> {
  const version = path.version ?? headers.get(VERSION_HEADER)
  return {
    ...(version !== null && isVersion(version) && { version }),
    userAgents: [headers.get('user-agent'), headers.get('x-ms-useragent')],
  }
}

const VERSION_HEADER = 'ai-chat-protocol-version'

/** @throws FieldError 404 for an unknown version in the path, 400 for one in the header */
function requireVersion({ request, path }: OpenCall): void {
  const version = path.version ?? request.headers.get(VERSION_HEADER)
  if (version === null || version === undefined || isVersion(version)) return
  const known = `There is no version \`${version.slice(0, 50)}\` of the protocol. The known ones are: ${VERSIONS.join(', ')}.`
  throw new FieldError(path.version === undefined ? 400 : 404, 'unknown_version', known)
}

// =============================================================================
// The requests of the Azure Search demo's front end before its first question: which of its options to show, and
// whether users must sign in. The types are those of its `api/models.ts` and `authConfig.ts`.

/** GET /config. Options that the assistant does not allow are not shown. @throws ApiError */
export async function frontConfig(call: OpenCall): Promise<object> {
  const { overrides } = await openAsked(call)
  return {
    showSemanticRankerOption: overrides.includes('semantic_ranker') && canRerank(call.env),
    showVectorOption: overrides.includes('retrieval_mode'),
    showReasoningEffortOption: false,
    defaultReasoningEffort: '',
    reasoningEffortOptions: [],
    defaultRetrievalReasoningEffort: '',
    streamingEnabled: true,
    // The browser stores this history. The demo's server-side history in Cosmos is not needed: Parley stores
    // conversations anyway.
    showChatHistoryBrowser: true,
    showChatHistoryCosmos: false,
    showQueryRewritingOption: false,
    showMultimodalOptions: false,
    showGPT4VOptions: false,
    showUserUpload: false,
    showLanguagePicker: false,
    showSpeechInput: false,
    showSpeechOutputBrowser: false,
    showSpeechOutputAzure: false,
    showAgenticRetrievalOption: false,
    ragSearchTextEmbeddings: true,
    ragSearchImageEmbeddings: false,
    ragSendTextSources: true,
    ragSendImageSources: false,
    webSourceEnabled: false,
    sharepointSourceEnabled: false,
  }
}

/** GET /auth_setup. Nobody signs in: the key decides who may ask. @throws ApiError */
export async function authSetup(call: OpenCall): Promise<object> {
  await openAsked(call)
  return {
    useLogin: false,
    requireAccessControl: false,
    enableUnauthenticatedAccess: true,
    msalConfig: {
      auth: {
        clientId: '',
        authority: '',
        redirectUri: '/',
        postLogoutRedirectUri: '/',
        navigateToLoginRequestUrl: false,
      },
      cache: { cacheLocation: 'sessionStorage', storeAuthStateInCookie: false },
    },
    loginRequest: { scopes: [] },
    tokenRequest: { scopes: [] },
  }
}

/** The assistant of the path, for a request without a question. @throws ApiError */
const openAsked = async (call: OpenCall): Promise<Assistant> =>
  openAssistant(call, await admitAsker(call), call.path.assistant ?? DEFAULT_ASSISTANT)
