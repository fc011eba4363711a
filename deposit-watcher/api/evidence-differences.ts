/** Where books and chain differ about a deposit, or cannot be compared, and what is to be done. */
import { AppError } from "../../chain/errors.js";
import { isDeletedThere, isOfServer } from "../../rpc-client/data-api/data-api-client.js";
import { isBehind, isPruned } from "../../rpc-client/errors.js";
import { DepositError } from "../errors.js";

/** What is to be done, by what differs; as in the API file. */
const NEXT_STEPS = {
  /** The node has another block at the deposit's height. */
  BLOCK_REPLACED:
    "Ask a second node for this block. If the chain came back without the booked one, " +
    "causeway recover says what is to be undone; else connect a node of the right chain.",
  /** The books have undone the deposit with its block. */
  REVERSED:
    "Nothing is to be done: the deposit was reversed with its block; mined again, it is a " +
    "deposit of its own.",
  /** Node and Data API have different blocks at its height. */
  SOURCES_DISAGREE:
    "Ask a second node which of the two blocks the chain has, and connect another one in the " +
    "place of who is wrong; a Data API makes its index anew when its folder is deleted.",
  /** Its block has no movement of the asset to the address in its transaction. */
  OPERATION_GONE:
    "Ask a second node for the receipt of the transaction. If it has none either, pay nothing " +
    "out for this deposit, and take it out of the books (causeway ledger adjust).",
  /** What moved the coins did not succeed. */
  OPERATION_FAILED:
    "Ask a second node for the receipt of the transaction. If it failed there, too, nothing " +
    "came: take it out of the books (causeway ledger adjust).",
  /** It moved another amount than is booked. */
  AMOUNT_DIFFERS:
    "Ask a second node for the receipt of the transaction. If it says the same, book the " +
    "difference by the name of the deposit (causeway ledger adjust).",
  /** The address's coins changed by something else than its operations come to. */
  BALANCE_DIFFERS:
    "Ask a second node for both balances. If it says the same, the Data API leaves an operation " +
    "out: causeway reconcile names the blocks and transactions behind it.",
  /** The balances that the token's contract tells contradict what its logs claim, or what is booked of it. */
  TOKEN_CONTRADICTED:
    "Ask a second node for both balances. If it says the same, the contract tells of old blocks " +
    "otherwise than before: do not pay the token out, read its code, and book what is missing " +
    "(causeway ledger adjust).",
  /** Beside the token's claims came more, or less, than lies in suspense. */
  SURPLUS_DIFFERS:
    "Look at what lies in suspense of this token at the address, and correct it once causeway " +
    "reconcile names the difference (causeway ledger adjust).",
  /** After the deposit's block the token's contract ran code that nobody has accepted. */
  CODE_NOT_ACCEPTED:
    "causeway tokens state names the code that the contract runs now: read it, and what it ran " +
    "then. Where neither is to be trusted, take the deposit out of the books (causeway ledger adjust).",
  /** The token's contract tells no balance of the address. */
  TOKEN_SILENT:
    "Nothing is contradicted, and nothing proven: ask again later, and look at the contract if " +
    "that stays so.",
  /** A node has deleted what the evidence is made of. */
  STATE_DELETED:
    "Nothing is contradicted: ask where a node that keeps all blocks and states is connected " +
    "(node.json-rpc-url of the watcher, or behind the Data API).",
  /** Node or Data API do not have the block yet, or not any more for now. */
  BEHIND: "Nothing is contradicted: ask again later; causeway status shows how far they are.",
  /** Node or Data API cannot be asked, or refuse. */
  NOT_TOLD: "Nothing is contradicted: ask again later; causeway doctor says what the matter is.",
} as const;

/** One of the codes of what differs. */
export type DifferenceCode = keyof typeof NEXT_STEPS;

/** One difference, or one reason why nothing can be compared. */
export interface Difference {
  readonly code: DifferenceCode;
  /** What differs, one sentence. */
  readonly message: string;
  /** What a person does about it. */
  readonly nextStep: string;
}

/** A difference with the next step of its code. */
export function difference(code: DifferenceCode, message: string): Difference {
  return { code, message, nextStep: NEXT_STEPS[code] };
}

/** Why the chain's part is missing: never a contradiction. */
export function whyUntold(error: AppError): Difference {
  const { message } = error;
  if (error instanceof EvidenceUntold) {
    return difference(error.reason, `${message.charAt(0).toUpperCase()}${message.slice(1)}.`);
  }
  if (isPruned(error) || isDeletedThere(error)) {
    return difference("STATE_DELETED", `A node has deleted what is asked for: ${message}.`);
  }
  if (isBehind(error)) {
    return difference("BEHIND", `A node does not have the deposit's block: ${message}.`);
  }
  const who = isOfServer(error) ? "The Data API does" : "The node or the Data API does";
  return difference("NOT_TOLD", `${who} not tell: ${message}.`);
}

/** The chain's part cannot be put together, for a reason that this program finds by itself. */
export class EvidenceUntold extends DepositError {
  constructor(
    readonly reason: "BEHIND" | "TOKEN_SILENT" | "NOT_TOLD",
    message: string,
  ) {
    super("NOT_READY", message, { retriable: true });
  }
}
