/** Typesense's routes. */
import { route, wire } from './wire.mjs'

const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'year', type: 'int32', facet: true },
]

export const typesense = wire({
  name: 'api/typesense',
  title: 'Typesense API',
  about:
    'Collections, documents, searches, conversation models, aliases and keys. Parameters and replies are as ' +
    "[Typesense's documentation](https://typesense.org/docs/30.0/api/) has them; " +
    '[what differs](/docs/typesense) is told. The key goes in `X-TYPESENSE-API-KEY`.',
  header: 'X-TYPESENSE-API-KEY',
  names: {
    'documents/:id': 'documents/1',
    'synonyms/:id': 'synonyms/sea',
    'overrides/:id': 'overrides/pin',
    'presets/:name': 'presets/shelf',
    'stopwords/:name': 'stopwords/articles',
    'synonym_sets/:name': 'synonym_sets/clothes',
    'curation_sets/:name': 'curation_sets/sale',
    'clothes/items/:id': 'clothes/items/ceo',
    'sale/items/:id': 'sale/items/recent',
    'dictionaries/:id': 'dictionaries/plurals',
    'rules/:name': 'rules/book_views',
    'nl_search_models/:id': 'nl_search_models/interpreter',
    'models/:id': 'models/reader',
    'keys/:id': 'keys/KEY_ID',
    ':collection': 'books',
    ':alias': 'library',
  },
  groups: [
    {
      title: 'Server',
      routes: [
        route('GET', '/health', 'Says whether Parley is up. It needs no key.'),
        route('GET', '/health_with_rusage', 'The same, for those who may ask how busy a node is.'),
        route('GET', '/status', 'Says that no write waits.'),
        route('GET', '/limits', 'Lists no rules: the rate of each key is limited.'),
        route('GET', '/limits/active', 'Lists no blocked keys.'),
        route('GET', '/limits/exceeds', 'Lists no keys that asked too often.'),
        route('POST', '/limits', 'Refuses a rule, and says where rates are set.', {
          body: { action: 'throttle' },
          refused: true,
        }),
        route('PUT', '/limits/:id', 'Refuses a rule, and says where rates are set.', {
          send: '/limits/1',
          body: { action: 'throttle' },
          refused: true,
        }),
        route('GET', '/debug', 'Names the version.'),
        route('GET', '/stats.json', 'Tells of the requests of the last ten seconds.'),
        route('GET', '/metrics.json', 'Tells of disk and memory, as far as the platform does.'),
        route('GET', '/operations/schema_changes', 'Lists changes of schemas that are under way.'),
        route('POST', '/operations/cache/clear', 'Empties the cache of replies.'),
        route(
          'POST',
          '/operations/snapshot',
          'Does nothing: every write is durable. A `snapshot_path` is refused.',
        ),
        route('POST', '/operations/vote', 'Does nothing: every isolate takes writes.'),
        route('POST', '/operations/db/compact', 'Does nothing: Cloudflare compacts the databases.'),
        route('POST', '/operations/reset_peers', 'Does nothing: there are no peers.'),
        route('POST', '/config', 'Takes `log-slow-requests-time-ms: -1`, which is so already.', {
          body: { 'log-slow-requests-time-ms': -1 },
        }),
        ...['GET', 'POST'].map((method) =>
          route(method, '/personalization/models', 'Says why there are no personalization models.', {
            refused: 501,
          }),
        ),
        ...['GET', 'PUT', 'DELETE'].map((method) =>
          route(method, '/personalization/models/:id', 'Says why there are no personalization models.', {
            send: '/personalization/models/one',
            refused: 501,
          }),
        ),
        route('POST', '/proxy', 'Says why no request is passed on.', { refused: 501 }),
      ],
    },
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
        ),
        route(
          'GET',
          '/collections/:collection/nodes',
          "Asks the nodes of a cluster's collection, and says how each answers.",
        ),
        route('PATCH', '/collections/:collection', 'Adds and drops fields, and changes the metadata.', {
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
            query: 'action=upsert',
            body: { id: '1', title: 'Slow boats', year: 2019 },
          },
        ),
        route(
          'POST',
          '/collections/:collection/documents/import',
          'Writes documents, one on each line, and answers with a line for each.',
          {
            query: 'action=upsert',
            body: '{"id":"2","title":"Boats of the north","year":2021}\n{"id":"3","title":"Kitchens","year":1999}',
          },
        ),
        route(
          'GET',
          '/collections/:collection/documents/search',
          'Searches a collection. With `conversation=true` it answers a question.',
          {
            query: 'q=boats&query_by=title&facet_by=year',
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
          query: 'filter_by=year:>2000',
        }),
        route('GET', '/collections/:collection/documents/:id', 'Reads a document.'),
        route('PATCH', '/collections/:collection/documents/:id', 'Changes fields of a document.', {
          body: { year: 2020 },
        }),
        route(
          'PATCH',
          '/collections/:collection/documents',
          'Changes fields of all documents that a filter finds.',
          {
            query: 'filter_by=year:%3C2000',
            body: { author: 'unknown' },
          },
        ),
        route('DELETE', '/collections/:collection/documents/:id', 'Deletes a document.', {
          send: '/collections/books/documents/3',
        }),
        route('DELETE', '/collections/:collection/documents', 'Deletes all documents that a filter finds.', {
          query: 'filter_by=year:%3C2020',
        }),
      ],
    },
    {
      title: 'Aliases',
      routes: [
        route('PUT', '/aliases/:alias', 'Makes an alias, or points it elsewhere.', {
          body: { collection_name: 'books' },
        }),
        route('GET', '/aliases', 'Lists aliases.'),
        route('GET', '/aliases/:alias', 'Reads an alias.'),
        route('DELETE', '/aliases/:alias', 'Deletes an alias, not its collection.'),
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
            body: { value: { query_by: 'title', per_page: 5 } },
          },
        ),
        route('GET', '/presets', 'Lists presets.'),
        route('GET', '/presets/:name', 'Reads a preset.'),
        route('DELETE', '/presets/:name', 'Deletes a preset.'),
        route(
          'PUT',
          '/stopwords/:name',
          'Keeps words that searches leave out which name them in `stopwords`.',
          {
            body: { stopwords: ['a', 'the'] },
          },
        ),
        route('GET', '/stopwords', 'Lists sets of stopwords.'),
        route('GET', '/stopwords/:name', 'Reads a set of stopwords.'),
        route('DELETE', '/stopwords/:name', 'Deletes a set of stopwords.'),
      ],
    },
    {
      title: 'Synonym sets',
      about: 'A collection names its sets in `synonym_sets`, a search its own in the parameter of that name.',
      routes: [
        route('PUT', '/synonym_sets/:name', 'Stores a set of synonyms.', {
          body: { items: [{ id: 'coat', synonyms: ['coat', 'jacket'] }] },
        }),
        route('GET', '/synonym_sets', 'Lists sets of synonyms.'),
        route('GET', '/synonym_sets/:name', 'Reads a set of synonyms.'),
        route('PUT', '/synonym_sets/:name/items/:id', 'Stores a synonym of a set.', {
          body: { root: 'ceo', synonyms: ['chief executive officer'] },
        }),
        route('GET', '/synonym_sets/:name/items', 'Lists the synonyms of a set.', {
          query: 'limit=10',
        }),
        route('GET', '/synonym_sets/:name/items/:id', 'Reads a synonym.'),
        route('DELETE', '/synonym_sets/:name/items/:id', 'Deletes a synonym.'),
        route('DELETE', '/synonym_sets/:name', 'Deletes a set of synonyms.'),
      ],
    },
    {
      title: 'Curation sets',
      about: 'A collection names its sets in `curation_sets`.',
      routes: [
        route('PUT', '/curation_sets/:name', 'Stores a set of rules that change searches.', {
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
        route('GET', '/curation_sets/:name', 'Reads a curation set.'),
        route('PUT', '/curation_sets/:name/items/:id', 'Stores a rule of a set.', {
          body: { rule: { query: 'new', match: 'contains' }, filter_by: 'year:>2020' },
        }),
        route('GET', '/curation_sets/:name/items', 'Lists the rules of a set.'),
        route('GET', '/curation_sets/:name/items/:id', 'Reads a rule.'),
        route('DELETE', '/curation_sets/:name/items/:id', 'Deletes a rule.'),
        route('DELETE', '/curation_sets/:name', 'Deletes a curation set.'),
      ],
    },
    {
      title: 'Synonyms and overrides of a collection',
      about:
        'The routes of releases before 30. They write the sets `<collection>_synonyms_index` and `<collection>_curations_index`.',
      routes: [
        route('PUT', '/collections/:collection/synonyms/:id', 'Stores a synonym of a collection.', {
          body: { synonyms: ['sea', 'ocean'] },
        }),
        route('GET', '/collections/:collection/synonyms', 'Lists the synonyms of a collection.'),
        route('GET', '/collections/:collection/synonyms/:id', 'Reads a synonym.'),
        route('DELETE', '/collections/:collection/synonyms/:id', 'Deletes a synonym.'),
        route('PUT', '/collections/:collection/overrides/:id', 'Stores a rule of a collection.', {
          body: { rule: { query: 'reef', match: 'exact' }, excludes: [{ id: '9' }] },
        }),
        route('GET', '/collections/:collection/overrides', 'Lists the rules of a collection.'),
        route('GET', '/collections/:collection/overrides/:id', 'Reads a rule.'),
        route('DELETE', '/collections/:collection/overrides/:id', 'Deletes a rule.'),
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
            query: 'id=plurals',
            body: '{"word":"people","root":"person"}\n{"word":"mice","root":"mouse"}',
          },
        ),
        route('GET', '/stemming/dictionaries', 'Lists the ids of dictionaries.'),
        route('GET', '/stemming/dictionaries/:id', 'Reads a dictionary.'),
        route('DELETE', '/stemming/dictionaries/:id', 'Deletes a dictionary.'),
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
          body: { type: 'log', collection: 'books', event_type: 'visit' },
        }),
        route('POST', '/analytics/events', 'Tells of an event: a search, a click, a conversion, a visit.', {
          body: { name: 'book_views', data: { doc_id: '1', user_id: 'ann' } },
        }),
        route('GET', '/analytics/events', "Reads a user's latest events in the log of a rule.", {
          query: 'user_id=ann&name=book_views&n=10',
        }),
        route('DELETE', '/analytics/events', 'Erases what rules have logged of a user.', {
          query: 'user_id=ann',
        }),
        route('POST', '/analytics/flush', 'Puts all counts into documents now.'),
        route('GET', '/analytics/status', 'Tells how many counts wait.'),
        route('DELETE', '/analytics/rules/:name', 'Deletes a rule, and its log.'),
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
        route('GET', '/nl_search_models/:id', 'Reads a model.'),
        route('PUT', '/nl_search_models/:id', 'Changes properties of a model.', {
          body: { system_prompt: 'Prices are in euros.' },
        }),
        route('DELETE', '/nl_search_models/:id', 'Deletes a model.'),
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
        route('GET', '/conversations/models/:id', 'Reads a conversation model.'),
        route('PUT', '/conversations/models/:id', 'Changes properties of a conversation model.', {
          body: { ttl: 3600 },
        }),
        route('DELETE', '/conversations/models/:id', 'Deletes a conversation model. Its messages expire.'),
      ],
    },
    {
      title: 'Keys',
      routes: [
        route('POST', '/keys', 'Makes a key. Its value is shown this once.', {
          body: { description: 'search only', actions: ['documents:search'], collections: ['books'] },
        }),
        route('GET', '/keys', 'Lists keys, without their values.'),
        route('GET', '/keys/:id', 'Reads a key.'),
        route('PATCH', '/keys/:id', 'Changes the description, the expiry or the limits of a key.', {
          body: { limits: { tokens_per_day: 200_000 } },
        }),
        route('DELETE', '/keys/:id', 'Deletes a key.'),
      ],
    },
    {
      title: 'The end of a collection',
      routes: [route('DELETE', '/collections/:collection', 'Deletes a collection with its documents.')],
    },
  ],
})
