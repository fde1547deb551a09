/**
 * The requests of the Azure Search demo's front end before its first question: which of its options to show, and
 * whether users must sign in. The types are those of its `api/models.ts` and `authConfig.ts`.
 */
import { DEFAULT_ASSISTANT } from '../../registry/assistants'
import { admitAsker, openAssistant } from '../http/open-assistant'
import { json } from '../http/response'
import { canRerank } from '../http/retrieval'
import { type ChatCall, refuse } from './chat'

/** GET /config. Options that the assistant does not allow are not shown. Never throws. */
export const frontConfig = (call: ChatCall): Promise<Response> =>
  answer(call, ({ overrides }) => ({
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
  }))

/** GET /auth_setup. Nobody signs in: the key decides who may ask. Never throws. */
export const authSetup = (call: ChatCall): Promise<Response> =>
  answer(call, () => ({
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
  }))

async function answer(
  call: ChatCall,
  say: (assistant: Awaited<ReturnType<typeof openAssistant>>) => unknown,
): Promise<Response> {
  const { path } = call
  try {
    const access = await admitAsker(call)
    return json(say(await openAssistant(call, access, path.assistant ?? DEFAULT_ASSISTANT)))
  } catch (error) {
    return refuse(call, error)
  }
}
