import { describe, expect, it } from 'vitest'
import { errorResponse, faultOf, turnFault } from '../../../src/api/ai-chat/errors'
import { ImpossibleChange } from '../../../src/api/http/plan'
import { ApiError, coded, type Failure } from '../../../src/errors'

describe('the status of a failure, given that the client repeats some by itself', () => {
  it.each<[string, Failure, number, string, number | undefined]>([
    [
      "a provider's fault",
      { code: 'model_failed', status: 400, message: 'm' },
      500,
      'model_failed',
      undefined,
    ],
    [
      'a key that a provider denies',
      { code: 'model_denied', status: 400, message: 'm' },
      500,
      'model_failed',
      undefined,
    ],
    [
      'an unknown conversation',
      { code: 'unknown_conversation', status: 404, message: 'm' },
      400,
      'bad_request',
      undefined,
    ],
    ['a request that the model refused', { status: 400, message: 'm' }, 400, 'bad_request', undefined],
    [
      'an interrupted turn (no 503, which is repeated for minutes)',
      { status: 503, message: 'm' },
      429,
      'interrupted',
      1,
    ],
    ['a full queue (case 36)', { status: 429, message: 'm', retryAfter: 5 }, 429, 'too_many_requests', 5],
    [
      'a budget until midnight (case 36)',
      { status: 429, message: 'm', retryAfter: 40_000 },
      429,
      'too_many_requests',
      undefined,
    ],
    ['a key used twice', { status: 422, message: 'm' }, 422, 'idempotency_key_reused', undefined],
    ['a fault of ours', { status: 500, message: 'm' }, 500, 'internal_error', undefined],
  ])('%s', (_, fault, status, code, retryAfter) => {
    const told = turnFault(fault)
    expect([told.status, told.code, told.retryAfter]).toEqual([status, code, retryAfter])
    expect(errorResponse(told, 'text').headers.get('retry-after')).toBe(
      retryAfter === undefined ? null : String(retryAfter),
    )
  })
})

describe('a thrown error', () => {
  it('names the override that asked for what cannot be', () => {
    expect(faultOf(new ImpossibleChange('vectorField', 'No field.'))).toEqual({
      status: 400,
      code: 'unsupported_override',
      message: expect.stringContaining('context.overrides.vector_fields is not supported: No field.'),
      field: 'context.overrides.vector_fields',
    })
  })

  it('is told by the status of its turn', () => {
    expect(faultOf(coded('model_failed', 400, 'OpenAI API error: no'))).toMatchObject({
      status: 500,
      code: 'model_failed',
    })
    expect(faultOf(coded('search_failed', 400, 'Could not find a filter field'))).toMatchObject({
      status: 400,
    })
    expect(faultOf(new ApiError(404, 'Assistant not found'))).toEqual({
      status: 404,
      code: 'not_found',
      message: 'Assistant not found',
    })
  })

  it('says which keys are taken, in the words of the clients', () => {
    expect(faultOf(new ApiError(401, 'Forbidden')).message).toContain('Authorization: Bearer')
  })
})
