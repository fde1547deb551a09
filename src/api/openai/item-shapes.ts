/** Items of conversations as OpenAI's API shows them. Pure. */
import type { SearchParameters } from '../../search/types'
import { InvalidParameter } from './question'

interface Said {
  role: 'user' | 'assistant'
  text: string
}

export const messageItem = ({ role, text }: Said, id: string) => ({
  id,
  type: 'message',
  role,
  status: 'completed',
  content: [
    role === 'user'
      ? { type: 'input_text', text }
      : { type: 'output_text', text, annotations: [], logprobs: [] },
  ],
})

export type MessageItem = ReturnType<typeof messageItem>

export const shownPage = (data: MessageItem[], more: boolean) => ({
  object: 'list',
  data,
  first_id: data[0]?.id ?? null,
  last_id: data.at(-1)?.id ?? null,
  has_more: more,
})

const MOST_ITEMS = 100
const USUAL_ITEMS = 20

export interface ItemPage {
  limit: number
  order: 'asc' | 'desc'
  after: string | undefined
}

/** @throws InvalidParameter */
export function pageOf({ limit, order = 'desc', after }: SearchParameters): ItemPage {
  const most = limit === undefined ? USUAL_ITEMS : Number(limit)
  if (!Number.isInteger(most) || most < 1 || most > MOST_ITEMS) {
    throw new InvalidParameter(`\`limit\` must be a number from 1 to ${MOST_ITEMS}.`, 'limit')
  }
  if (order !== 'asc' && order !== 'desc') {
    throw new InvalidParameter('`order` must be `asc` or `desc`.', 'order')
  }
  return { limit: most, order, after }
}
