/** Events as ABCI has them. */

/** One attribute; `index` says whether searches can find the event by it. */
export interface AbciAttribute {
  readonly key: string;
  readonly value: string;
  readonly index: boolean;
}

/** One event. */
export interface AbciEvent {
  readonly type: string;
  readonly attributes: readonly AbciAttribute[];
}
