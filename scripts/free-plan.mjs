/** `node scripts/free-plan.mjs`: the tables of docs/free-plan.md and of the models in docs/models.md. */
import './installed.mjs'
import { freeSentence, freeTable } from './costs/free-plan.mjs'
import { modelsTable } from './costs/workers-ai.mjs'

console.log(`${freeSentence()}\n\n${freeTable()}\n\n${modelsTable()}`)
