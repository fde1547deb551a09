/** Typesense's routes. */
import { server } from './typesense-server.mjs'
import { route } from './wire.mjs'

const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'year', type: 'int32', facet: true },
]

/** @type {import('./wire.mjs').Wire} */
export const typesense = {
  name: 'api/typesense',
  title: 'Typesense API',
  about:
    'Collections, documents, searches, conversation models, aliases and keys. Parameters and replies are as ' +
    "[Typesense's documentation](https://typesense.org/docs/30.0/api/) has them; " +
    '[what differs](/docs/typesense) is told. The key goes in `X-TYPESENSE-API-KEY`.',
  header: 'X-TYPESENSE-API-KEY',
  groups: [
    { title: 'Server', routes: server },
    {
      title: 'Collections',
      routes: [
        route('POST', '/collections', 'Makes a collection. With `?src_name=` it is a clone of another one.', {
          body: { name: 'books', fields: FIELDS },
        }),
        route('GET', '/collections', 'Lists the collections that the key may see.'),
        route(
          'GET',
          '/collections/:collection',
          'Reads a collection: its fields and how many documents it has.',
          {
            send: '/collections/books',
          },
        ),
        route(
          'GET',
          '/collections/:collection/nodes',
          "Asks the nodes of a cluster's collection, and says how each answers.",
          { send: '/collections/books/nodes' },
        ),
        route('PATCH', '/collections/:collection', 'Adds and drops fields, and changes the metadata.', {
          send: '/collections/books',
          body: { fields: [{ name: 'author', type: 'string', optional: true }] },
        }),
      ],
    },
    {
      title: 'Documents',
      routes: [
        route(
          'POST',
          '/collections/:collection/documents',
          'Writes a document. `action` says what to do with one that is there.',
          {
            send: '/collections/books/documents?action=upsert',
            body: { id: '1', title: 'Slow boats', year: 2019 },
          },
        ),
        route(
          'POST',
          '/collections/:collection/documents/import',
          'Writes documents, one on each line, and answers with a line for each.',
          {
            send: '/collections/books/documents/import?action=upsert',
            body: '{"id":"2","title":"Boats of the north","year":2021}\n{"id":"3","title":"Kitchens","year":1999}',
          },
        ),
        route(
          'GET',
          '/collections/:collection/documents/search',
          'Searches a collection. With `conversation=true` it answers a question.',
          {
            send: '/collections/books/documents/search?q=boats&query_by=title&facet_by=year',
          },
        ),
        route(
          'POST',
          '/multi_search',
          'Makes several searches at once, or one union of them. With `conversation=true` it answers a question from all of them.',
          {
            body: { searches: [{ collection: 'books', q: 'boats', query_by: 'title' }] },
          },
        ),
        route('GET', '/collections/:collection/documents/export', 'Gives all documents, one on each line.', {
          send: '/collections/books/documents/export?filter_by=year:>2000',
        }),
        route('GET', '/collections/:collection/documents/:id', 'Reads a document.', {
          send: '/collections/books/documents/1',
        }),
        route('PATCH', '/collections/:collection/documents/:id', 'Changes fields of a document.', {
          send: '/collections/books/documents/1',
          body: { year: 2020 },
        }),
        route(
          'PATCH',
          '/collections/:collection/documents',
          'Changes fields of all documents that a filter finds.',
          {
            send: '/collections/books/documents?filter_by=year:%3C2000',
            body: { author: 'unknown' },
          },
        ),
        route('DELETE', '/collections/:collection/documents/:id', 'Deletes a document.', {
          send: '/collections/books/documents/3',
        }),
        route('DELETE', '/collections/:collection/documents', 'Deletes all documents that a filter finds.', {
          send: '/collections/books/documents?filter_by=year:%3C2020',
        }),
      ],
    },
    {
      title: 'Aliases',
      routes: [
        route('PUT', '/aliases/:alias', 'Makes an alias, or points it elsewhere.', {
          send: '/aliases/library',
          body: { collection_name: 'books' },
        }),
        route('GET', '/aliases', 'Lists aliases.'),
        route('GET', '/aliases/:alias', 'Reads an alias.', { send: '/aliases/library' }),
        route('DELETE', '/aliases/:alias', 'Deletes an alias, not its collection.', {
          send: '/aliases/library',
        }),
      ],
    },
    {
      title: 'Presets and stopwords',
      routes: [
        route(
          'PUT',
          '/presets/:name',
          'Keeps parameters of a search, for searches that name them in `preset`.',
          {
            send: '/presets/shelf',
            body: { value: { query_by: 'title', per_page: 5 } },
          },
        ),
        route('GET', '/presets', 'Lists presets.'),
        route('GET', '/presets/:name', 'Reads a preset.', { send: '/presets/shelf' }),
        route('DELETE', '/presets/:name', 'Deletes a preset.', { send: '/presets/shelf' }),
        route(
          'PUT',
          '/stopwords/:name',
          'Keeps words that searches leave out which name them in `stopwords`.',
          {
            send: '/stopwords/articles',
            body: { stopwords: ['a', 'the'] },
          },
        ),
        route('GET', '/stopwords', 'Lists sets of stopwords.'),
        route('GET', '/stopwords/:name', 'Reads a set of stopwords.', { send: '/stopwords/articles' }),
        route('DELETE', '/stopwords/:name', 'Deletes a set of stopwords.', { send: '/stopwords/articles' }),
      ],
    },
    {
      title: 'Synonym sets',
      about: 'A collection names its sets in `synonym_sets`, a search its own in the parameter of that name.',
      routes: [
        route('PUT', '/synonym_sets/:name', 'Stores a set of synonyms.', {
          send: '/synonym_sets/clothes',
          body: { items: [{ id: 'coat', synonyms: ['coat', 'jacket'] }] },
        }),
        route('GET', '/synonym_sets', 'Lists sets of synonyms.'),
        route('GET', '/synonym_sets/:name', 'Reads a set of synonyms.', { send: '/synonym_sets/clothes' }),
        route('PUT', '/synonym_sets/:name/items/:id', 'Stores a synonym of a set.', {
          send: '/synonym_sets/clothes/items/ceo',
          body: { root: 'ceo', synonyms: ['chief executive officer'] },
        }),
        route('GET', '/synonym_sets/:name/items', 'Lists the synonyms of a set.', {
          send: '/synonym_sets/clothes/items?limit=10',
        }),
        route('GET', '/synonym_sets/:name/items/:id', 'Reads a synonym.', {
          send: '/synonym_sets/clothes/items/ceo',
        }),
        route('DELETE', '/synonym_sets/:name/items/:id', 'Deletes a synonym.', {
          send: '/synonym_sets/clothes/items/ceo',
        }),
        route('DELETE', '/synonym_sets/:name', 'Deletes a set of synonyms.', {
          send: '/synonym_sets/clothes',
        }),
      ],
    },
    {
      title: 'Curation sets',
      about: 'A collection names its sets in `curation_sets`.',
      routes: [
        route('PUT', '/curation_sets/:name', 'Stores a set of rules that change searches.', {
          send: '/curation_sets/sale',
          body: {
            items: [
              {
                id: 'pin',
                rule: { query: 'reef', match: 'exact' },
                includes: [{ id: '1', position: 1 }],
              },
            ],
          },
        }),
        route('GET', '/curation_sets', 'Lists curation sets.'),
        route('GET', '/curation_sets/:name', 'Reads a curation set.', { send: '/curation_sets/sale' }),
        route('PUT', '/curation_sets/:name/items/:id', 'Stores a rule of a set.', {
          send: '/curation_sets/sale/items/recent',
          body: { rule: { query: 'new', match: 'contains' }, filter_by: 'year:>2020' },
        }),
        route('GET', '/curation_sets/:name/items', 'Lists the rules of a set.', {
          send: '/curation_sets/sale/items',
        }),
        route('GET', '/curation_sets/:name/items/:id', 'Reads a rule.', {
          send: '/curation_sets/sale/items/recent',
        }),
        route('DELETE', '/curation_sets/:name/items/:id', 'Deletes a rule.', {
          send: '/curation_sets/sale/items/recent',
        }),
        route('DELETE', '/curation_sets/:name', 'Deletes a curation set.', { send: '/curation_sets/sale' }),
      ],
    },
    {
      title: 'Synonyms and overrides of a collection',
      about:
        'The routes of releases before 30. They write the sets `<collection>_synonyms_index` and `<collection>_curations_index`.',
      routes: [
        route('PUT', '/collections/:collection/synonyms/:id', 'Stores a synonym of a collection.', {
          send: '/collections/books/synonyms/sea',
          body: { synonyms: ['sea', 'ocean'] },
        }),
        route('GET', '/collections/:collection/synonyms', 'Lists the synonyms of a collection.', {
          send: '/collections/books/synonyms',
        }),
        route('GET', '/collections/:collection/synonyms/:id', 'Reads a synonym.', {
          send: '/collections/books/synonyms/sea',
        }),
        route('DELETE', '/collections/:collection/synonyms/:id', 'Deletes a synonym.', {
          send: '/collections/books/synonyms/sea',
        }),
        route('PUT', '/collections/:collection/overrides/:id', 'Stores a rule of a collection.', {
          send: '/collections/books/overrides/pin',
          body: { rule: { query: 'reef', match: 'exact' }, excludes: [{ id: '9' }] },
        }),
        route('GET', '/collections/:collection/overrides', 'Lists the rules of a collection.', {
          send: '/collections/books/overrides',
        }),
        route('GET', '/collections/:collection/overrides/:id', 'Reads a rule.', {
          send: '/collections/books/overrides/pin',
        }),
        route('DELETE', '/collections/:collection/overrides/:id', 'Deletes a rule.', {
          send: '/collections/books/overrides/pin',
        }),
      ],
    },
    {
      title: 'Stemming dictionaries',
      routes: [
        route(
          'POST',
          '/stemming/dictionaries/import',
          'Adds words and their roots to the dictionary `?id=`.',
          {
            send: '/stemming/dictionaries/import?id=plurals',
            body: '{"word":"people","root":"person"}\n{"word":"mice","root":"mouse"}',
          },
        ),
        route('GET', '/stemming/dictionaries', 'Lists the ids of dictionaries.'),
        route('GET', '/stemming/dictionaries/:id', 'Reads a dictionary.', {
          send: '/stemming/dictionaries/plurals',
        }),
        route('DELETE', '/stemming/dictionaries/:id', 'Deletes a dictionary.', {
          send: '/stemming/dictionaries/plurals',
        }),
      ],
    },
    {
      title: 'Analytics',
      about: '[What is counted](/docs/analytics), and what is stored of people.',
      routes: [
        route('POST', '/analytics/rules', 'Makes a rule, or each of a list of rules.', {
          body: {
            name: 'book_clicks',
            type: 'counter',
            collection: 'books',
            event_type: 'click',
            params: { counter_field: 'year', weight: 1 },
          },
        }),
        route('GET', '/analytics/rules', 'Lists rules, with `?rule_tag=` those of a tag.'),
        route('GET', '/analytics/rules/:name', 'Reads a rule.', { send: '/analytics/rules/book_clicks' }),
        route('PUT', '/analytics/rules/:name', 'Makes a rule, or changes parameters of one.', {
          send: '/analytics/rules/book_views',
          body: { type: 'log', collection: 'books', event_type: 'visit' },
        }),
        route('POST', '/analytics/events', 'Tells of an event: a search, a click, a conversion, a visit.', {
          body: { name: 'book_views', data: { doc_id: '1', user_id: 'ann' } },
        }),
        route('GET', '/analytics/events', "Reads a user's latest events in the log of a rule.", {
          send: '/analytics/events?user_id=ann&name=book_views&n=10',
        }),
        route('DELETE', '/analytics/events', 'Erases what rules have logged of a user.', {
          send: '/analytics/events?user_id=ann',
        }),
        route('POST', '/analytics/flush', 'Puts all counts into documents now.'),
        route('GET', '/analytics/status', 'Tells how many counts wait.'),
        route('DELETE', '/analytics/rules/:name', 'Deletes a rule, and its log.', {
          send: '/analytics/rules/book_views',
        }),
      ],
    },
    {
      title: 'Models for plain language',
      about: 'A model turns a [search in plain language](/docs/typesense) into words, a filter and an order.',
      routes: [
        route('POST', '/nl_search_models', 'Makes a model for searches with `nl_query=true`.', {
          body: {
            id: 'interpreter',
            model_name: 'openai/gpt-4.1-mini',
            api_key: 'sk-your-key',
            openai_url: 'https://api.openai.com',
            max_bytes: 16_384,
          },
        }),
        route('GET', '/nl_search_models', 'Lists these models, their secrets masked.'),
        route('GET', '/nl_search_models/:id', 'Reads a model.', { send: '/nl_search_models/interpreter' }),
        route('PUT', '/nl_search_models/:id', 'Changes properties of a model.', {
          send: '/nl_search_models/interpreter',
          body: { system_prompt: 'Prices are in euros.' },
        }),
        route('DELETE', '/nl_search_models/:id', 'Deletes a model.', {
          send: '/nl_search_models/interpreter',
        }),
      ],
    },
    {
      title: 'Conversation models',
      about: 'A model needs a [history collection](/docs/models): here `conversation_store`.',
      routes: [
        route('POST', '/conversations/models', 'Makes a conversation model.', {
          body: {
            id: 'reader',
            model_name: 'local/extractive',
            history_collection: 'conversation_store',
            max_bytes: 16_384,
          },
        }),
        route('GET', '/conversations/models', 'Lists conversation models, their secrets masked.'),
        route('GET', '/conversations/models/:id', 'Reads a conversation model.', {
          send: '/conversations/models/reader',
        }),
        route('PUT', '/conversations/models/:id', 'Changes properties of a conversation model.', {
          send: '/conversations/models/reader',
          body: { ttl: 3600 },
        }),
        route('DELETE', '/conversations/models/:id', 'Deletes a conversation model. Its messages expire.', {
          send: '/conversations/models/reader',
        }),
      ],
    },
    {
      title: 'Keys',
      routes: [
        route('POST', '/keys', 'Makes a key. Its value is shown this once.', {
          body: { description: 'search only', actions: ['documents:search'], collections: ['books'] },
          keep: { KEY_ID: 'id' },
        }),
        route('GET', '/keys', 'Lists keys, without their values.'),
        route('GET', '/keys/:id', 'Reads a key.', { send: '/keys/KEY_ID' }),
        route('DELETE', '/keys/:id', 'Deletes a key.', { send: '/keys/KEY_ID' }),
      ],
    },
    {
      title: 'The end of a collection',
      routes: [
        route('DELETE', '/collections/:collection', 'Deletes a collection with its documents.', {
          send: '/collections/books',
        }),
      ],
    },
  ],
}
