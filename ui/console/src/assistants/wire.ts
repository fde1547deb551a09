/** An assistant as PUT /assistants/{name} takes it. What this page does not show is kept as it is. */
export interface AssistantBody {
  model: string
  collections?: string[]
  searches?: { collection: string }[]
  system_prompt?: string
  questions: string[]
  followups?: boolean
  retrieval?: 'plain' | 'agentic'
  allowed_origins?: string[]
  [more: string]: unknown
}

export interface StoredAssistant extends AssistantBody {
  name: string
  created_at: number
  updated_at: number
}
