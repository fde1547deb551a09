/** Parley's own API: conversations of all protocols, assistants, and maintenance. */
import { type App, register } from '../http/router'
import * as assistants from './assistants'
import { count, documents, page, restore } from './backup'
import { follow, get, list, rate, remove, removeOfUser, rename, stop, trace, withdraw } from './conversations'
import { reconcile, reseal } from './maintenance'
import { operations } from './operations'
import * as sets from './question-sets'
import { askByName, askDirectly } from './questions'
import { route } from './route'
import * as sources from './sources'
import { usage } from './usage'

// Registered after Typesense's routes, because /conversations/models is Typesense's.
export const mountParley = (app: App): void =>
  register(app, [
    route(operations.ask, askDirectly, { begins: () => true }),
    route(operations.listConversations, list),
    route(operations.getConversation, get),
    route(operations.renameConversation, rename),
    route(operations.deleteConversation, remove),
    route(operations.followConversation, follow),
    route(operations.stopConversation, stop),
    route(operations.traceConversation, trace),
    route(operations.giveFeedback, rate),
    route(operations.deleteFeedback, withdraw),
    route(operations.deleteUserConversations, removeOfUser),
    route(operations.listAssistants, assistants.list),
    route(operations.putAssistant, assistants.put),
    route(operations.getAssistant, assistants.get),
    route(operations.deleteAssistant, assistants.remove),
    route(operations.frontOfAssistant, assistants.front),
    route(operations.askAssistant, askByName),
    route(operations.findDocuments, assistants.find),
    route(operations.handOver, assistants.toPeople),
    route(operations.listUsage, usage),
    route(operations.listQuestionSets, sets.list),
    route(operations.putQuestionSet, sets.put),
    route(operations.getQuestionSet, sets.get),
    route(operations.deleteQuestionSet, sets.remove),
    route(operations.runQuestionSet, sets.begin),
    route(operations.getQuestionRun, sets.readRun),
    route(operations.stepQuestionRun, sets.step),
    route(operations.endQuestionRun, sets.end),
    route(operations.noteImport, sets.note),
    route(operations.listSources, sources.list),
    route(operations.putSource, sources.put),
    route(operations.deleteSource, sources.remove),
    route(operations.runSource, sources.run),
    route(operations.reseal, reseal),
    route(operations.reconcileVectors, reconcile),
    route(operations.countBackup, count),
    route(operations.readBackup, page),
    route(operations.readDocuments, documents),
    route(operations.restoreBackup, restore),
  ])
