/** What customers of an exchange under faults did, asked for and were told. */
import { NATIVE_ASSET } from "../../../ledger/journal/accounts.js";

/** The symbol of the token of the lab's chain. */
export const LAB_TOKEN = "PLAIN";

/** Coins, or the lab's token. */
export type Asset = typeof NATIVE_ASSET | typeof LAB_TOKEN;

/** So much of an asset for an address. */
export interface Movement {
  readonly asset: Asset;
  readonly to: string;
  readonly amountUnits: bigint;
}

/** A transaction of the faucet. */
export interface Payment extends Movement {
  readonly hash: string;
  readonly raw: string;
  /** The node has answered with the hash; from then on nobody sends it again. */
  isAcknowledged: boolean;
  /** Sent before its address was given to a customer: suspense is as right as a credit. */
  readonly isEarly: boolean;
}

/**
 * What a withdrawal is meant to meet: a payout, one to an own deposit address, a refusal, the loss of
 * the deposit that covers it, its customer's wish to take it back: that one is paid or cancelled.
 */
export type WithdrawalKind = "fresh" | "own" | "refusing" | "uncovered" | "unwanted";

/** A withdrawal that a customer asked for. */
export interface Request extends Movement {
  readonly key: string;
  readonly customerId: string;
  kind: WithdrawalKind;
  id: string | undefined;
  /** RFC 3339; not paid by then, it is cancelled. */
  readonly expiresAt?: string;
  /** The API has said that it is cancelled: nothing may be paid for it. */
  isToldCancelled?: boolean;
  /** A chain that came back older mined something else in the place of what had ended it. */
  minedAgain?: "paid" | "unpaid";
}

/** A row of a list, every field as text; null is "null". */
export type Row = Readonly<Record<string, string>>;

/** An event as the API tells it. */
export interface ExchangeEvent {
  readonly seq: number;
  /** Rises with each recovery of the ledger; numbers have no gap within one. */
  readonly epoch: number;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Whether an event may come right behind another: the next number, or a later epoch's first. */
export function follows(before: ExchangeEvent | undefined, event: ExchangeEvent): boolean {
  if (before === undefined) return true;
  if (event.epoch === before.epoch) return event.seq === before.seq + 1;
  return event.epoch > before.epoch && event.seq > before.seq;
}
