/** The descriptions of the tools for clients. */
import { once } from '../../lib/once'

const string = (description: string) => ({ type: 'string', description })
const array = (items: unknown) => ({ type: 'array', items })
const object = (properties: Record<string, unknown>, required: string[]) => ({
  type: 'object',
  properties,
  required,
})

/** An input has no further properties. Outputs may get more. */
const input = (properties: Record<string, unknown>, required: string[]) => ({
  ...object(properties, required),
  additionalProperties: false,
})

const READS = { readOnlyHint: true, openWorldHint: false }

export const definitions = once(() => {
  const id = string('`COLLECTION/ID`; pass it to `fetch`.')
  const limit = (most: number) => ({ type: 'integer', minimum: 1, maximum: most })
  return [
    {
      name: 'search',
      title: 'Search documents',
      description: 'Finds documents by words and by meaning, the best first.',
      inputSchema: input({ query: string('Words or a question.'), limit: limit(50) }, ['query']),
      outputSchema: object(
        {
          results: array(
            object(
              {
                id,
                title: string('Title.'),
                url: string('Address.'),
                text: string('Text, cut if it is long.'),
              },
              ['id', 'title', 'text'],
            ),
          ),
        },
        ['results'],
      ),
      annotations: READS,
    },
    {
      name: 'fetch',
      title: 'Read a document',
      description: 'Returns the whole text of a document that `search` or `ask` named.',
      inputSchema: input({ id }, ['id']),
      outputSchema: object(
        {
          id,
          title: string('Title.'),
          text: string('The whole text.'),
          url: string('Address.'),
          metadata: object({ collection: string('Collection.') }, ['collection']),
        },
        ['id', 'title', 'text', 'metadata'],
      ),
      annotations: READS,
    },
    {
      name: 'ask',
      title: 'Ask a question',
      description:
        'Answers a question from the documents and names its sources. Pass `conversation_id` of an earlier answer to ask a follow-up.',
      inputSchema: input(
        {
          question: string('A question in plain language.'),
          conversation_id: string('`conversation_id` of the answer to go on from.'),
        },
        ['question'],
      ),
      outputSchema: object(
        {
          conversation_id: string('Names the conversation.'),
          turn: { type: 'integer' },
          answer: string('The answer.'),
          sources: array(
            object({ id, title: string('Title.'), url: string('Address.'), cited: { type: 'boolean' } }, [
              'id',
              'title',
              'cited',
            ]),
          ),
          followups: array({ type: 'string' }),
        },
        ['conversation_id', 'turn', 'answer', 'sources'],
      ),
      // Each question is stored as a turn of its conversation.
      annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
    },
    {
      name: 'list_conversations',
      title: 'List conversations',
      description: 'Lists earlier conversations of whoever holds the key, the last used first.',
      inputSchema: input(
        {
          q: string('Words of a question or its answer.'),
          limit: limit(100),
          cursor: string('`next_cursor` of the page before.'),
        },
        [],
      ),
      outputSchema: object(
        {
          conversations: array(
            object(
              {
                id: string('Pass it to `ask` as `conversation_id`.'),
                title: string('The first question.'),
                turn_count: { type: 'integer' },
                created_at: { type: 'integer' },
                updated_at: { type: 'integer' },
              },
              ['id', 'title', 'turn_count', 'created_at', 'updated_at'],
            ),
          ),
          next_cursor: string('Of the next page.'),
        },
        ['conversations'],
      ),
      annotations: READS,
    },
  ]
})
