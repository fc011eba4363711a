/** A page of the balance journal as it is stored: changes of neighbouring transactions, and events. */
import type { TransactionJournal } from "../../chain/balance-change.js";
import type { AbciEvent } from "../../chain/consensus/abci-types.js";
import { encodeRlp, type RlpItem, rlpList } from "../../chain/encoding/rlp.js";
import { changeItem, integer, safeInteger } from "./block-codec.js";
import { decodeEvent, eventItem } from "./cosmos-codec.js";

/**
 * The changes of each transaction; behind them, where code of any called modules, the places of
 * those transactions with their events.
 */
export function encodeJournalPage(journals: readonly TransactionJournal[]): Uint8Array {
  const placed = journals.flatMap(({ events }, item) =>
    events === undefined ? [] : [[integer(item), events.map(eventItem)]],
  );
  const changes = journals.map((one) => one.changes.map(changeItem));
  return encodeRlp(placed.length === 0 ? changes : [...changes, placed]);
}

/** What `encodeJournalPage` put behind the changes: events by the place of their transaction. */
export function decodePlacedEvents(placed: RlpItem | undefined): Map<number, AbciEvent[]> {
  if (placed === undefined) return new Map();
  return new Map(
    rlpList(placed).map((one) => {
      const [item, events] = rlpList(one);
      return [safeInteger(item), rlpList(events).map(decodeEvent)];
    }),
  );
}
