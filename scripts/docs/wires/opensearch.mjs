/** OpenSearch's routes for indices, documents and searches. */
import { memoryGroups } from './opensearch-ml.mjs'
import { route } from './wire.mjs'

const ALL = { query: { match_all: {} } }
const BULK =
  '{ "index": { "_id": "2" } }\n{ "title": "Boats of the north", "year": 2021 }\n{ "index": { "_id": "3" } }\n{ "title": "Kitchens", "year": 1999 }\n'
const REPEATED = 'The same, with the index named in the body.'

/** @type {import('./wire.mjs').WireGroup[]} */
const groups = [
  {
    title: 'Cluster',
    routes: [
      route(
        'GET',
        '/',
        'Names the server and its version, for a client that brings a key. A browser gets the console.',
      ),
      route('GET', '/_cluster/health', 'Says whether the cluster is up.'),
      route('GET', '/_cluster/settings', 'Reads the settings.'),
      route('PUT', '/_cluster/settings', 'Changes the settings of the ML plugin that Parley knows.', {
        body: { persistent: { 'plugins.ml_commons.rag_pipeline_feature_enabled': true } },
      }),
    ],
  },
  {
    title: 'Indices',
    about: 'An index is a collection.',
    routes: [
      route('PUT', '/:collection', 'Makes an index.', {
        send: '/boats',
        body: { mappings: { properties: { title: { type: 'text' }, year: { type: 'integer' } } } },
      }),
      route('GET', '/:collection', 'Reads an index: mapping, settings and aliases.', { send: '/boats' }),
      route('GET', '/_cluster/health/:collection', 'Says whether an index is up.', {
        send: '/_cluster/health/boats',
      }),
      route('GET', '/:collection/_mapping', 'Reads the fields.', { send: '/boats/_mapping' }),
      route('PUT, POST', '/:collection/_mapping', 'Adds fields.', {
        send: '/boats/_mapping',
        body: { properties: { author: { type: 'keyword' } } },
      }),
      route('GET', '/:collection/_settings', 'Reads the settings of an index.', { send: '/boats/_settings' }),
      route(
        'PUT',
        '/:collection/_settings',
        'Sets the default search pipeline of an index; `null` takes it back.',
        {
          send: '/boats/_settings',
          body: { index: { 'search.default_pipeline': null } },
        },
      ),
      route('GET', '/_cat/indices', 'Lists the indices that the key may see.', {
        send: '/_cat/indices?format=json',
      }),
      route('GET', '/_cat/indices/:index', 'Lists one index, or those that a pattern fits.', {
        send: '/_cat/indices/boats?format=json',
      }),
      route('POST', '/_aliases', 'Adds and removes aliases.', {
        body: { actions: [{ add: { index: 'boats', alias: 'fleet' } }] },
      }),
      route('GET', '/_aliases', 'Lists indices with their aliases.'),
      route('GET', '/:collection/_aliases', 'Lists the aliases of an index.', { send: '/boats/_aliases' }),
      route('GET', '/_alias', 'Lists indices with their aliases.'),
      route('GET', '/:collection/_alias', 'Lists the aliases of an index.', { send: '/boats/_alias' }),
      route('PUT, POST', '/:collection/_alias/:alias', 'Adds an alias.', { send: '/boats/_alias/ships' }),
      route('GET', '/:collection/_alias/:alias', 'Reads an alias of an index.', {
        send: '/boats/_alias/ships',
      }),
      route('GET', '/_alias/:alias', 'Lists the indices of an alias.', { send: '/_alias/ships' }),
      route('DELETE', '/:collection/_alias/:alias', 'Removes an alias.', { send: '/boats/_alias/ships' }),
      route('PUT, POST', '/:collection/_aliases/:alias', 'Adds an alias.', { send: '/boats/_aliases/ships' }),
      route('DELETE', '/:collection/_aliases/:alias', 'Removes an alias.', { send: '/boats/_aliases/ships' }),
    ],
  },
  {
    title: 'Documents',
    routes: [
      route('PUT, POST', '/:collection/_doc/:id', 'Writes a document, over one that is there.', {
        send: '/boats/_doc/1',
        body: { title: 'Slow boats', year: 2019 },
      }),
      route('POST', '/:collection/_doc', 'Writes a document under an id that Parley makes.', {
        send: '/boats/_doc',
        body: { title: 'Boats without a number', year: 2022 },
      }),
      route('PUT, POST', '/:collection/_create/:id', 'Writes a document unless its id is taken.', {
        send: '/boats/_create/4',
        body: { title: 'Ferries', year: 2015 },
      }),
      route(
        'POST, PUT',
        '/:collection/_bulk',
        'Writes and deletes many documents, with an answer for each.',
        {
          send: '/boats/_bulk',
          body: BULK,
        },
      ),
      route('POST, PUT', '/_bulk', REPEATED, {
        body: '{ "delete": { "_index": "boats", "_id": "4" } }\n',
      }),
      route('POST', '/:collection/_update/:id', 'Changes fields of a document.', {
        send: '/boats/_update/1',
        body: { doc: { year: 2020 } },
      }),
      route('GET', '/:collection/_doc/:id', 'Reads a document.', { send: '/boats/_doc/1' }),
      route('GET', '/:collection/_source/:id', 'Reads what was written as a document, alone.', {
        send: '/boats/_source/1',
      }),
      route('POST, GET', '/:collection/_mget', 'Reads several documents.', {
        send: '/boats/_mget',
        body: { ids: ['1', '2'] },
      }),
      route('POST, GET', '/_mget', REPEATED, { body: { docs: [{ _index: 'boats', _id: '1' }] } }),
      route('POST, GET', '/:collection/_refresh', 'Does nothing: writes are visible at once.', {
        send: '/boats/_refresh',
      }),
      route('POST, GET', '/_refresh', 'Does nothing either.'),
      route('POST, GET', '/_all/_refresh', 'Does nothing either.'),
    ],
  },
  {
    title: 'Searches',
    routes: [
      route(
        'POST, GET',
        '/:collection/_search',
        'Searches. With a pipeline and `ext.generative_qa_parameters` it answers a question.',
        {
          send: '/boats/_search',
          body: { query: { match: { title: 'boats' } }, size: 5 },
        },
      ),
      route('POST, GET', '/:collection/_count', 'Counts what a query finds.', {
        send: '/boats/_count',
        body: ALL,
      }),
      route('POST, GET', '/_search/scroll', 'Reads the next page of a search with `?scroll=1m`.', {
        body: { scroll_id: 'no such id' },
        refused: 404,
      }),
      route('POST, GET', '/_search/scroll/:id', 'The same, with the id in the path.', {
        send: '/_search/scroll/none',
        refused: 404,
      }),
      route('DELETE', '/_search/scroll', 'Does nothing: a scroll keeps nothing.', {
        body: { scroll_id: 'any' },
      }),
      route('DELETE', '/_search/scroll/:id', 'Does nothing either.', { send: '/_search/scroll/any' }),
      route('POST, GET', '/:collection/_msearch', 'Makes several searches.', {
        send: '/boats/_msearch',
        body: '{}\n{ "query": { "match_all": {} } }\n',
      }),
      route('POST, GET', '/_msearch', REPEATED, {
        body: '{ "index": "boats" }\n{ "query": { "match_all": {} } }\n',
      }),
    ],
  },
]

/** @type {import('./wire.mjs').WireGroup} */
const end = {
  title: 'The end of a document and an index',
  routes: [
    route('DELETE', '/:collection/_doc/:id', 'Deletes a document.', { send: '/boats/_doc/2' }),
    route('POST', '/:collection/_delete_by_query', 'Deletes what a query finds.', {
      send: '/boats/_delete_by_query',
      body: { query: { range: { year: { lt: 2000 } } } },
    }),
    route('DELETE', '/:collection', 'Deletes an index, or several: a list, or `*`.', { send: '/boats' }),
  ],
}

/** @type {import('./wire.mjs').Wire} */
export const opensearch = {
  name: 'api/opensearch',
  title: 'OpenSearch API',
  about:
    'Indices, documents and searches, and conversational search with connectors, models, pipelines and memory. ' +
    '[OpenSearch compatibility](/docs/opensearch) says what each takes. The key is the password of Basic authentication; ' +
    '`Authorization: Bearer KEY` works too.',
  header: 'Authorization',
  groups: [...groups, ...memoryGroups, end],
}
