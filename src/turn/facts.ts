/** Facts of a turn that servers and clients name alike. No imports: the console compiles this file too. */

/** A document of a collection. */
export interface SourceReference {
  /** name of the collection */
  collection: string
  /** the document's id there */
  document_id: string
}

/** A document that was found but did not fit into the prompt whole. */
export interface CutDocument extends SourceReference {
  /** how many of its passages are in the prompt; 0: none, it was left out */
  passages: number
  /** how many passages it has */
  of: number
}

/** A source that the answer uses, with its place in the answer: UTF-16 offsets, `end` exclusive. */
export interface Citation extends SourceReference {
  start: number
  end: number
  /** the sentence of the source that supports this part, if one can be named */
  quote?: string
}

export interface Usage {
  /** full name of the model that answered */
  model: string
  input_tokens?: number
  output_tokens?: number
  /** true if the provider reported no figures and these are estimated from bytes */
  estimated?: boolean
}

export interface Timings {
  /** milliseconds since the turn began to run */
  rewritten?: number
  retrieved?: number
  first_token?: number
  finished?: number
}

export interface HitTrace {
  id?: string
  text_match?: number
  vector_distance?: number
  /** the score from rank fusion */
  score?: number
}
