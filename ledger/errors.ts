/** Coded faults of the ledger. */
import { AppError } from "../chain/errors.js";

/**
 * Codes of the ledger. FOREIGN_LEDGER and NEWER_LEDGER: the database belongs to another chain or a
 * later version; MIGRATION_NEEDED: its tables are older than this program, whose role may not change
 * them, or which was not asked to; NUMBERS_BEHIND: rows would get numbers that lie before others, and the
 * service's role may not change that; ROLE_UNSAFE: a service's role may do more than a service
 * should; JOURNAL_CONFLICT: a used idempotency key came with other postings;
 * INSUFFICIENT_BALANCE and UNKNOWN_CUSTOMER: the database refused a movement;
 * CURSOR_MOVED: another watcher advanced the cursor;
 * DEPOSIT_CONFLICT: a deposit at this place is booked already; INVALID_CUSTOMER_ID: not 1-64 of
 * the allowed characters; INVALID_WALLET_FILE: the hot wallet's keystore names no address;
 * RECOVERY: the ledger is older than what was answered from it, or another one, and is closed until
 * it is recovered; COMMIT_LOST: a standby took over that lacks what is about to be told: ask again;
 * INCIDENT_OPEN: something that must not happen was found, and a person has to look first;
 * HOME_MARK_UNUSABLE: what the home remembers of its ledger cannot be read or
 * written; INVALID_DECISION: an operator decided what cannot be; DECIDED_ALREADY: about the same
 * thing there is a decision; NO_PROPOSAL: nothing of this number waits for approval;
 * SECOND_PERSON_NEEDED: the proposer cannot approve; NOT_FROZEN: an operator decided about a
 * withdrawal that is not frozen; NODE_BEHIND: a node shows less of the chain than is known;
 * NO_WALLET_TRANSACTION: a named payment is none of the hot wallet's, or a
 * node does not show all that its nonces count;
 * ASSET_CONTRADICTED: the list of tokens says otherwise than the ledger about one that it keeps books of;
 * UNKNOWN_WALLET: none of this ledger's; TOO_MANY_WALLETS: it takes no more; WALLET_NOT_EMPTY: what
 * is to be retired has coins or open nonces; OWN_ADDRESS: an address would be a hot wallet's and a customer's
 * at once;
 * INVALID_KEY and KEY_UNKNOWN: an API key cannot be made like that, or there is none of that id;
 * INVALID_WEBHOOK, TOO_MANY_WEBHOOKS, WEBHOOK_UNKNOWN: the same of webhooks; SECRETS_FULL,
 * SECRET_UNKNOWN and LAST_SECRET: a webhook has two secrets at most, and one at least;
 * STATEMENT_TOO_LONG: a statement would have too many lines; STATEMENT_NOT_BEGUN: its time is to
 * come; HEIGHT_NOT_BOOKED: the books are not
 * so far; NEGATIVE_LIABILITY: they owe less than nothing;
 * SWITCH_LOWERED: only a person lowers the kill switch; SIGNING_STOPPED and APPROVALS_MISSING: a named
 * payment cannot be taken for a withdrawal's while the switch stops nonces, or persons have not approved it;
 * CORRUPT_ROW: a stored value is not what its column says.
 */
const LEDGER_ERROR_CODES = [
  "FOREIGN_LEDGER",
  "NEWER_LEDGER",
  "MIGRATION_NEEDED",
  "NUMBERS_BEHIND",
  "ROLE_UNSAFE",
  "JOURNAL_CONFLICT",
  "INSUFFICIENT_BALANCE",
  "UNKNOWN_CUSTOMER",
  "CURSOR_MOVED",
  "DEPOSIT_CONFLICT",
  "INVALID_CUSTOMER_ID",
  "INVALID_WALLET_FILE",
  "RECOVERY",
  "COMMIT_LOST",
  "INCIDENT_OPEN",
  "HOME_MARK_UNUSABLE",
  "INVALID_DECISION",
  "DECIDED_ALREADY",
  "NO_PROPOSAL",
  "SECOND_PERSON_NEEDED",
  "NOT_FROZEN",
  "NODE_BEHIND",
  "NO_WALLET_TRANSACTION",
  "ASSET_CONTRADICTED",
  "UNKNOWN_WALLET",
  "TOO_MANY_WALLETS",
  "WALLET_NOT_EMPTY",
  "OWN_ADDRESS",
  "INVALID_KEY",
  "KEY_UNKNOWN",
  "INVALID_WEBHOOK",
  "TOO_MANY_WEBHOOKS",
  "WEBHOOK_UNKNOWN",
  "SECRETS_FULL",
  "SECRET_UNKNOWN",
  "LAST_SECRET",
  "STATEMENT_TOO_LONG",
  "STATEMENT_NOT_BEGUN",
  "HEIGHT_NOT_BOOKED",
  "NEGATIVE_LIABILITY",
  "CORRUPT_ROW",
  "SWITCH_LOWERED",
  "SIGNING_STOPPED",
  "APPROVALS_MISSING",
] as const;

/** One of `LEDGER_ERROR_CODES`. */
export type LedgerErrorCode = (typeof LEDGER_ERROR_CODES)[number];

/** A fault of the ledger; `details` never hold secrets. */
export class LedgerError extends AppError<LedgerErrorCode> {}
