/** Analytics rules through the official client: made, changed, refused. */
import { beforeAll, describe, expect, test } from 'vitest'
import { popular, rule, type Stage, stage } from './analytics-stage'
import { client, request, unique } from './harness'

describe('rules', () => {
  let place: Stage
  beforeAll(async () => {
    place = await stage()
  })

  test('are made, listed, changed, read and deleted', async () => {
    const given = { ...popular(place), rule_tag: unique('tag') }
    // The reply shows what was given (the Rust client's own test compares it), and lists show the defaults.
    expect(await rule(given)).toEqual(given)
    const made = {
      ...given,
      params: { ...given.params, expand_query: false, capture_search_requests: true },
    }
    const rules = client().analytics.rules()
    expect(await rules.retrieve(given.rule_tag)).toEqual([made])
    expect(await rules.retrieve()).toContainEqual(made)
    const changed = await rules.upsert(given.name, { params: { limit: 50 } } as never)
    expect(changed).toEqual({ ...made, params: { ...(made.params as object), limit: 50 } })
    expect(await client().analytics.rules(given.name).retrieve()).toEqual(changed)
    expect(await client().analytics.rules(given.name).delete()).toMatchObject({ name: given.name })
    await expect(client().analytics.rules(given.name).retrieve()).rejects.toMatchObject({
      httpStatus: 400,
      message: expect.stringContaining('Rule not found'),
    })
  })

  test('of a list are each made or refused', async () => {
    const made = await client()
      .analytics.rules()
      .create([popular(place), popular(place, { limit: 0 })] as never)
    expect(made).toEqual([
      expect.objectContaining({ type: 'popular_queries' }),
      { error: 'Limit should be a number greater than 0' },
    ])
  })

  test.each<[object, string]>([
    [{ name: '' }, 'Name is required when creating an analytics rule'],
    [{ event_type: 5 }, 'Event type is required when creating a new analytics rule'],
    [{ type: undefined }, 'Type is required when creating a new analytics rule'],
    [{ collection: undefined }, 'Collection is required when creating a new analytics rule'],
    [{ collection: 'nowhere' }, 'Collection nowhere does not exist'],
    [{ rule_tag: 5 }, 'Rule tag should be a string'],
    [{ event_type: 'click' }, 'Event type or type is invalid (or) combination of both is invalid'],
    [{ type: 'clicks' }, 'Event type or type is invalid (or) combination of both is invalid'],
    [
      { params: {} },
      'Destination collection is required when creating a no hit queries or popular queries type rule',
    ],
    [{ params: { destination_collection: 'nowhere', limit: 5 } }, 'Destination collection does not exist'],
    [{ params: { destination_collection: 'x', limit: 20_000 } }, 'Limit should be at most 10000'],
    [{ params: { expand_query: 'yes' } }, 'Expand query should be a boolean'],
    [{ params: { capture_search_requests: 1 } }, 'Capture search requests should be a boolean'],
    [{ params: { meta_fields: ['q'] } }, 'Meta field should be either filter_by or analytics_tag'],
    [
      { type: 'counter', event_type: 'click', params: { weight: 1 } },
      'Counter field is required when creating a counter type rule',
    ],
    [
      { type: 'counter', event_type: 'click', params: { counter_field: 'n', weight: 0 } },
      'Weight should be a number greater than 0',
    ],
    [
      { type: 'counter', event_type: 'click', params: { counter_field: 'name', weight: 1 } },
      'The destination collection needs a field `name` of the type int32 or int64.',
    ],
    [
      { type: 'log', params: { destination_collection: 'elsewhere' } },
      '`destination_collection` does not apply to rules of the type log. Their events stay with the collection.',
    ],
  ])('%j is refused', async (wrong, message) => {
    const { status, body } = await request('POST', '/analytics/rules', { ...popular(place), ...wrong })
    expect([status, body.message]).toEqual([400, message])
  })

  test('keep their type, collection and event', async () => {
    const { name } = await rule(popular(place))
    for (const [change, message] of [
      [{ type: 'log' }, 'Rule type cannot be changed'],
      [{ collection: 'x' }, 'Rule collection cannot be changed'],
      [{ event_type: 'click' }, 'Rule event type cannot be changed'],
    ]) {
      const { status, body } = await request('PUT', `/analytics/rules/${name}`, change)
      expect([status, body.message]).toEqual([400, message])
    }
    const { status, body } = await request('POST', '/analytics/rules', { ...popular(place), name })
    expect([status, body.message]).toEqual([400, 'Rule already exists'])
  })

  test('of release 29 become rules of release 30', async () => {
    const name = unique('rule')
    const events = [
      { type: 'click', name: `${name}-click`, weight: 1 },
      { type: 'conversion', name: `${name}-buy`, weight: 4 },
    ]
    const params = {
      source: { collections: [place.products], events },
      destination: { collection: place.products, counter_field: 'popularity' },
    }
    const { status, body } = await request('PUT', `/analytics/rules/${name}`, { type: 'counter', params })
    expect([status, body]).toEqual([200, { name, type: 'counter', params }])
    expect((await request('GET', `/analytics/rules?rule_tag=${name}`)).body).toMatchObject([
      { name: `${name}-click`, event_type: 'click', params: { weight: 1, counter_field: 'popularity' } },
      { name: `${name}-buy`, event_type: 'conversion', params: { weight: 4 } },
    ])
  })
})
