import { describe, expect, it } from 'vitest'
import { LIMITS, VectorizeDouble } from './double'

const unit = (dimensions: number, axis: number): number[] =>
  Array.from({ length: dimensions }, (_, i) => (i === axis ? 1 : 0))

const index = (): VectorizeDouble => new VectorizeDouble(4)
const many = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ id: `${n}`, values: unit(4, n % 4) }))
const refusal = async (work: () => unknown): Promise<string> => {
  try {
    await work()
    return 'accepted'
  } catch (error) {
    return String(error)
  }
}

describe('the double of Vectorize', () => {
  it('keeps to the documented limits', async () => {
    const values = unit(4, 0)
    const cases: [string, (double: VectorizeDouble) => unknown, string][] = [
      ['dimensions of an index', () => new VectorizeDouble(1537), '1536'],
      ['vectors of an upsert', (double) => double.upsert(many(1001)), '1000'],
      ['dimensions of a vector', (double) => double.upsert([{ id: 'a', values: [1] }]), '4 dimensions'],
      ['bytes of an id', (double) => double.upsert([{ id: 'é'.repeat(33), values }]), '64 bytes'],
      [
        'bytes of a namespace',
        (double) => double.upsert([{ id: 'a', values, namespace: 'n'.repeat(65) }]),
        '64 bytes',
      ],
      [
        'ids of a deletion',
        (double) => double.deleteByIds(many(101).map(({ id }) => id)),
        'max id count is 100',
      ],
      ['ids of a read', (double) => double.getByIds(many(21).map(({ id }) => id)), 'max id count is 20'],
      ['topK', (double) => double.query(values, { topK: 101 }), 'max top K is 100'],
      [
        'topK with values',
        (double) => double.query(values, { topK: 51, returnValues: true }),
        'max top K is 50',
      ],
    ]
    for (const [name, work, message] of cases) {
      expect(await refusal(() => work(index())), name).toContain(message)
    }
    const wide = new VectorizeDouble(1536)
    const largest = Array.from({ length: 1000 }, (_, n) => ({ id: `${n}`, values: new Float32Array(1536) }))
    expect(await refusal(() => wide.upsert(largest))).toBe('accepted')
  })

  it('shows mutations once a job has processed them, in order', async () => {
    const double = index()
    const { mutationId: first } = await double.upsert(many(3))
    const { mutationId: second } = await double.deleteByIds(['1'])
    expect((await double.query(unit(4, 0))).count).toBe(0)
    expect(await double.getByIds(['0'])).toEqual([])
    expect((await double.describe()).processedUpToMutation).toBe('')
    expect(double.runJob(1)).toBe(true)
    expect(await double.describe()).toMatchObject({ processedUpToMutation: first, vectorCount: 3 })
    expect(double.runJob()).toBe(false)
    expect(await double.describe()).toMatchObject({ processedUpToMutation: second, vectorCount: 2 })
  })

  it('takes no more than a thousand mutations into a job', async () => {
    const double = index()
    for (let n = 0; n <= LIMITS.jobMutations; n++) await double.upsert([{ id: `${n}`, values: unit(4, 0) }])
    expect(double.runJob()).toBe(true)
    expect(double.visible.size).toBe(LIMITS.jobMutations)
  })

  it('keeps namespaces apart and ids unique across them', async () => {
    const double = index()
    await double.upsert([{ id: 'a', values: unit(4, 0), namespace: 'one' }])
    await double.upsert([{ id: 'a', values: unit(4, 1), namespace: 'two' }])
    double.runJob()
    expect((await double.query(unit(4, 0), { namespace: 'one' })).count).toBe(0)
    expect((await double.query(unit(4, 0), { namespace: 'two' })).matches[0]).toMatchObject({
      id: 'a',
      score: 0,
    })
  })

  it('scores approximately, and exactly with values', async () => {
    const double = new VectorizeDouble(8)
    double.automatic = true
    const vectors = Array.from({ length: 400 }, (_, n) => ({
      id: `${n}`,
      values: Array.from({ length: 8 }, (_, i) => Math.sin(n * 7.1 + i * 3.3)),
    }))
    await double.upsert(vectors)
    double.overlooks = 50
    const approximate = await double.query(vectors[5]!.values, { topK: 50 })
    const exact = await double.query(vectors[5]!.values, { topK: 50, returnValues: true })
    expect(exact.matches[0]).toMatchObject({ id: '5' })
    const ids = ({ matches }: typeof exact) => matches.map(({ id }) => id as string)
    const shared = ids(approximate).filter((id) => ids(exact).includes(id))
    expect(ids(approximate)).not.toEqual(ids(exact))
    expect(shared.length).toBeGreaterThan(35)
  })

  it('fails as it is told', async () => {
    const double = index()
    double.fail('upsert', 'refused', 'unanswered', 'dropped')
    expect(await refusal(() => double.upsert(many(1)))).toContain('429')
    expect(double.waiting).toBe(0)
    expect(await refusal(() => double.upsert(many(1)))).toContain('connection')
    expect(double.waiting).toBe(1)
    expect(await refusal(() => double.upsert(many(1)))).toBe('accepted')
    expect(double.waiting).toBe(1)
  })
})
