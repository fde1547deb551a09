/** The forms of filter_by that Typesense documents, as its users meet them. */
import { beforeAll, describe, expect, it } from 'vitest'
import { idsOf, makeCollection, refusal, type TestCollection } from '../make-collection'

const found = async (collection: TestCollection, filter: string, more = {}): Promise<string[]> =>
  idsOf(await collection.search({ q: '*', filter_by: filter, per_page: '100', ...more })).sort()

describe('lists of values', () => {
  let things: TestCollection
  beforeAll(async () => {
    things = await makeCollection(
      [
        { name: 'title', type: 'string' },
        { name: 'tag', type: 'string', facet: true, optional: true },
        { name: 'points', type: 'int32', optional: true },
        { name: 'sizes', type: 'int32[]', optional: true },
        { name: 'stock', type: 'bool', optional: true },
      ],
      [
        { id: 'a', title: 'foo', tag: 'x', points: 1, sizes: [1, 2], stock: true },
        { id: 'b', title: 'bar', tag: 'y', points: 3, sizes: [1], stock: false },
        { id: 'c', title: 'foo bar', points: 5, sizes: [] },
        { id: 'd', title: 'baz', tag: 'some (annoying) value' },
      ],
    )
  })

  it.each([
    ['title:[]', []],
    ['title:=[]', []],
    ['tag:[ ]', []],
    ['points:[]', []],
    ['stock:[]', []],
    ['id:[]', []],
    ['title:!=[]', ['a', 'b', 'c', 'd']],
    ['tag:![]', ['a', 'b', 'c', 'd']],
    ['points:!=[]', ['a', 'b', 'c', 'd']],
    ['points:[] || tag:=x', ['a']],
    ['points:[!=1,>3]', ['b', 'c', 'd']],
    ['points:[!=3, 3]', ['a', 'b', 'c', 'd']],
    ['points:[1..2, >=5]', ['a', 'c']],
    ['points:![1..2, >=5]', ['b', 'd']],
    ['points:!>1', ['a', 'd']],
    ['sizes:[!=2]', ['b', 'c', 'd']],
    ['title:[ba*, foo]', ['a', 'b', 'c', 'd']],
    ['title:=[ba*]', ['b', 'd']],
    ['tag:`some (anno`*', ['d']],
    ['tag:=`some (anno`*', ['d']],
    ['tag:=[`some (annoying) value`, x]', ['a', 'd']],
    ['stock:!true', ['b', 'c', 'd']],
    ['stock:!=[true,false]', ['c', 'd']],
    ['id:![a, b]', ['c', 'd']],
  ])('%s', async (filter, ids) => {
    expect(await found(things, filter)).toEqual(ids)
  })

  it.each([
    ['title:!=', '400 Error with filter field `title`: Filter value cannot be empty.'],
    ['title:!= ', '400 Error with filter field `title`: Filter value cannot be empty.'],
    ['title:!=``', '400 Error with filter field `title`: Filter value cannot be empty.'],
    ['title:=[`foo`, ``]', '400 Error with filter field `title`: Filter value cannot be empty.'],
    ['points:[!=x]', '400 Error with filter field `points`: Not an int32.'],
    ['points:!=', '400 Error with filter field `points`: Filter value cannot be empty.'],
  ])('%s is refused', async (filter, message) => {
    expect(await refusal(things, { q: '*', filter_by: filter })).toBe(message)
  })

  it('a field that the schema lacks matches nothing where field names are not validated', async () => {
    const lenient = { validate_field_names: 'false' }
    expect(await refusal(things, { q: '*', filter_by: 'age:100' })).toBe(
      '400 Could not find a filter field named `age` in the schema.',
    )
    expect(await found(things, 'age: 100', lenient)).toEqual([])
    expect(await found(things, 'age: 100 && points: 3', lenient)).toEqual([])
    expect(await found(things, 'age: 100 || points: 3', lenient)).toEqual(['b'])
    expect(await found(things, '(age:[1..2] || points: 3) && title:`bar`', lenient)).toEqual(['b'])
  })
})

describe('phrases', () => {
  let long: TestCollection
  let facet: TestCollection
  beforeAll(async () => {
    const documents = ['foo', 'foo bar baz', 'foo bar', 'bar', 'x Foo, bar baz y', 'baz', 'foo baz bar'].map(
      (text, index) => ({ id: String(index), text, list: ['nothing', text], parts: ['foo bar', 'baz'] }),
    )
    const fields = (options: object) => [
      { name: 'text', type: 'string', ...options },
      { name: 'list', type: 'string[]', ...options },
      { name: 'parts', type: 'string[]', ...options },
    ]
    long = await makeCollection(fields({}), documents)
    facet = await makeCollection(fields({ facet: true }), documents)
  })

  it.each([
    ['text:"foo bar baz"', ['1', '4']],
    ['text: "foo bar"', ['1', '2', '4']],
    ['text:="foo bar"', ['1', '2', '4']],
    ['text:!="foo bar"', ['0', '3', '5', '6']],
    ['text:!"foo bar" && text:foo', ['0', '6']],
    ['list:"foo bar"', ['1', '2', '4']],
    ['parts:"bar baz"', []],
    ['text:["foo bar", baz]', ['1', '2', '4', '5']],
    ['text:![foo, "foo bar baz"]', ['2', '3', '5', '6']],
    ['text:"foo, bar" || text:=baz', ['1', '2', '4', '5']],
    ['text:`"foo bar"`', ['1', '2', '4', '6']],
    ['text:`"`', []],
    ['text:"foo && x" || text:=foo', ['0']],
  ])('%s', async (filter, ids) => {
    expect(await found(long, filter)).toEqual(ids)
    expect(await found(facet, filter)).toEqual(ids)
  })
})

describe('objects of an array', () => {
  let menu: TestCollection
  beforeAll(async () => {
    const dish = (id: string, ...ingredients: unknown[]) => ({ id, main: { ingredients }, ingredients })
    menu = await makeCollection(
      [
        { name: 'ingredients', type: 'object[]' },
        { name: 'ingredients.*', type: 'auto', optional: true },
        { name: 'main', type: 'object' },
      ],
      [
        dish('pasta', { name: 'cheese', share: 40, vegan: true }, { name: 'spinach', share: 10 }),
        dish('pizza', { name: 'cheese', share: 30, vegan: false }, { name: 'green olives', share: 30 }),
        dish('lasagna', { name: 'cheese', share: 60, vegan: true }, { name: 'green olives', share: 20 }),
        dish('salad', { name: 'olive oil', share: 5, from: { land: 'Italy' } }, { name: 'spinach' }),
      ],
      { enable_nested_fields: true },
    )
  })

  it.each([
    ['ingredients.{name : cheese && share :<50}', ['pasta', 'pizza']],
    ['ingredients.{name : green olives && share:[20, 25]}', ['lasagna']],
    ['ingredients.{name:[green, spinach] && share :[10..20]}', ['lasagna', 'pasta']],
    ['ingredients.{(name : olives && share :<25) || (name:cheese && share:30)}', ['lasagna', 'pizza']],
    ['ingredients.{name: che* && vegan: true} && ingredients.share:10', ['pasta']],
    ['ingredients.{name:!=cheese && share:>25}', ['pizza']],
    ['ingredients.{name:"green olives" && share:>25}', ['pizza']],
    ['ingredients.{from.land: italy && share:<10}', ['salad']],
    ['ingredients.{name:=spinach && share:!=10}', ['salad']],
    ['main.ingredients.{name : cheese && share :<50 && vegan:true}', ['pasta']],
    ['ingredients.{name: cheese && share:>35 && share:<35}', []],
    ['(ingredients.{name: cheese && share:60} || id:salad) && id:![pizza]', ['lasagna', 'salad']],
  ])('%s', async (filter, ids) => {
    expect(await found(menu, filter)).toEqual(ids)
  })

  it.each([
    ['ingredients.{name : cheese && share:30', 'Could not parse the object filter: unbalanced curly braces.'],
    [
      'ingredients.{name : cheese && shares:30}',
      'Could not find a filter field named `ingredients.shares` in the schema.',
    ],
    [
      'ingredients{name : cheese && share:30}',
      'Could not find a filter field named `ingredients{name` in the schema.',
    ],
    [
      'ingredients.{share : abc}',
      'Error with filter field `ingredients.share`: Numerical field has an invalid comparator.',
    ],
    ['ingredients.{}', 'Could not parse the filter query.'],
  ])('%s is refused', async (filter, message) => {
    expect(await refusal(menu, { q: '*', filter_by: filter })).toBe(`400 ${message}`)
  })
})

describe('objects of an array, value by value', () => {
  let items: TestCollection
  beforeAll(async () => {
    items = await makeCollection(
      [
        { name: 'items', type: 'object[]' },
        { name: 'items.y', type: 'int32[]', optional: true },
        {
          name: 'items.code',
          type: 'string[]',
          optional: true,
          symbols_to_index: ['+'],
          token_separators: ['-'],
        },
        { name: 'items.hidden', type: 'string[]', optional: true, store: false },
      ],
      [
        { id: 'both', items: [{ y: 5 }, { y: 6, code: 'c++-tools', hidden: 'x' }] },
        { id: 'five', items: [{ y: 5, code: 'c' }] },
      ],
      { enable_nested_fields: true },
    )
  })

  it.each([
    ['items.{y:[!=5]}', ['both']],
    ['items.{y:[!=5, >7]}', ['both']],
    ['items.{y:[!=5] && code:*}', ['both']],
    ['items.{code:=`c++ tools`}', ['both']],
    ['items.{code: tools && y:6}', ['both']],
    ['items.{code:!=`c tools` && y:6}', ['both']],
    ['items.{code:=c}', ['five']],
  ])('%s', async (filter, ids) => {
    expect(await found(items, filter)).toEqual(ids)
  })

  it('refuses a field that is not stored: its values have lost their objects', async () => {
    expect(await refusal(items, { q: '*', filter_by: 'items.{hidden:x}' })).toBe(
      '400 Error with filter field `items.hidden`: A field with `store: false` cannot be filtered inside of an object.',
    )
  })
})

describe('places', () => {
  let places: TestCollection
  beforeAll(async () => {
    places = await makeCollection(
      [
        { name: 'at', type: 'geopoint', optional: true },
        { name: 'area', type: 'geopolygon', optional: true },
        { name: 'stops', type: 'object[]', optional: true },
        { name: 'stops.at', type: 'geopoint[]', optional: true },
        { name: 'stops.name', type: 'string[]', optional: true },
      ],
      [
        {
          id: 'louvre',
          at: [48.861, 2.336],
          stops: [
            { at: [48.861, 2.336], name: 'one' },
            { at: [52.5, 13.4], name: 'two' },
          ],
        },
        { id: 'berlin', at: [52.52, 13.4] },
        { id: 'square', area: [0, 0, 1, 0, 1, 1, 0, 1] },
        { id: 'wide', area: [0, 0, 2, 0, 2, 2, 0, 2] },
        { id: 'far', area: [2, 2, 5, 2, 5, 4, 2, 4] },
      ],
      { enable_nested_fields: true },
    )
  })

  it.each([
    ['at:([48.853, 2.344], radius: 2km, exact_filter_radius: 100km)', ['louvre']],
    ['at:([48.853, 2.344], radius: 2 km)', ['louvre']],
    ['at:([48.853, 2.344], exact_filter_radius: 1mi, radius:0.1 mi)', []],
    ['at:([48.9, 2.2, 48.9, 2.5, 48.8, 2.5, 48.8, 2.2])', ['louvre']],
    ['at:[([48.853, 2.344], radius: 2km), ([52.5, 13.4], radius: 5 km)]', ['berlin', 'louvre']],
    ['at:![([48.853, 2.344], radius: 2km)] && at:*', ['berlin']],
    ['area:(0.5, 0.5)', ['square', 'wide']],
    ['area:(2.5, 3.5)', ['far']],
    ['area:[(0.5, 0.5), (2.5, 3.5)]', ['far', 'square', 'wide']],
    ['area:!=(0.5, 0.5) && area:*', ['far']],
    ['stops.{name: one && at:(48.86, 2.33, 5 km)}', ['louvre']],
    ['stops.{name: two && at:(48.86, 2.33, 5 km)}', []],
  ])('%s', async (filter, ids) => {
    expect(await found(places, filter)).toEqual(ids)
  })

  const form =
    '400 Value of filter field `at`: must be in the `([-44.50, 170.29], radius: 0.75 km, exact_filter_radius: 5 km)` or ([56.33, -65.97, 23.82, -127.82], exact_filter_radius: 7 km) format.'
  it.each([
    ['at:([48.853, 2.344])', form],
    ['at:([48.853, x], radius: 2km)', form],
    ['at:([48.853, 2.344, 1], radius: 2km)', form],
    ['at:([48.853, 2.344], radius: 2 miles)', '400 Unit must be either `km` or `mi`.'],
    ['area:(1, 2, 3 km)', '400 Value of geopolygon filter field must be in the format `(-44.50, 170.29)`'],
  ])('%s is refused', async (filter, message) => {
    expect(await refusal(places, { q: '*', filter_by: filter })).toBe(message)
  })

  it('a polygon comes back as it was sent, and is checked', async () => {
    const { hits } = await places.search({ q: '*', filter_by: 'id:square' })
    expect(hits![0]!.document.area).toEqual([0, 0, 1, 0, 1, 1, 0, 1])
    const refused = async (area: unknown) => {
      const outcome = await places.object.importLines([JSON.stringify({ area })], {
        action: 'create',
        returnDocument: false,
        returnId: false,
      })
      return outcome.ok && JSON.parse(outcome.value.results).error
    }
    expect(await refused([0, 0, 1, 0, 1])).toMatch(/^Field `area` must be /)
    expect(await refused([0, 0, 1, 1])).toMatch(/^Field `area` must be /)
    expect(await refused('x')).toMatch(/^Field `area` must be /)
  })
})
