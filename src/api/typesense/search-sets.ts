/** Presets and stopword sets, which searches name (registry/search-sets.ts). */
import {
  deletePreset,
  deleteStopwords,
  getPreset,
  getStopwords,
  listPresets,
  listStopwords,
  putPreset,
  putStopwords,
} from '../../registry/search-sets'
import { readJson } from '../http/body'
import { hinting, NEEDED } from '../http/parameters'
import { json } from '../http/response'
import type { Route } from '../http/route'

const PRESET = '/presets/:name'
const STOPWORDS = '/stopwords/:name'

export const searchSetRoutes: Route[] = [
  {
    method: 'PUT',
    path: PRESET,
    action: 'presets:upsert',
    handle: async ({ env, request, path }) => {
      const body = await readJson(request)
      return json(await hinting(body, NEEDED.preset, () => putPreset(env, path.name!, body)))
    },
  },
  {
    method: 'GET',
    path: '/presets',
    action: 'presets:list',
    handle: async ({ env }) => json({ presets: await listPresets(env) }),
  },
  {
    method: 'GET',
    path: PRESET,
    action: 'presets:get',
    handle: async ({ env, path }) => json({ name: path.name, value: await getPreset(env, path.name!) }),
  },
  {
    method: 'DELETE',
    path: PRESET,
    action: 'presets:delete',
    handle: async ({ env, path }) => json({ name: path.name, value: await deletePreset(env, path.name!) }),
  },
  {
    method: 'PUT',
    path: STOPWORDS,
    action: 'stopwords:upsert',
    handle: async ({ env, request, path }) => {
      const body = await readJson(request)
      return json(await hinting(body, NEEDED.stopwords, () => putStopwords(env, path.name!, body)))
    },
  },
  {
    method: 'GET',
    path: '/stopwords',
    action: 'stopwords:list',
    handle: async ({ env }) => json({ stopwords: await listStopwords(env) }),
  },
  {
    method: 'GET',
    path: STOPWORDS,
    action: 'stopwords:get',
    handle: async ({ env, path }) => json({ stopwords: await getStopwords(env, path.name!) }),
  },
  {
    method: 'DELETE',
    path: STOPWORDS,
    action: 'stopwords:delete',
    handle: async ({ env, path }) => {
      await deleteStopwords(env, path.name!)
      return json({ id: path.name })
    },
  },
]
