/** What operators may decide about a ledger: the vocabulary, and what makes two decisions the same. */
import { z } from "zod";
import { parseAddress } from "../../chain/address.js";
import { MAX_WORD, parseHash32 } from "../../chain/hex.js";
import {
  type AccountCode,
  ADJUSTMENT,
  BREAK,
  COLD_STORAGE,
  customerOf,
  DEPOSIT_ADDRESSES,
  NETWORK_FEE,
  OPENING_CAPITAL,
  parseCustomerId,
  standsForNobody,
  SUSPENSE,
  TREASURY,
  WITHDRAWAL_FEES,
  WRITE_OFF,
} from "../journal/accounts.js";
import { LedgerError } from "../errors.js";
import { BEARERS_OF_MOVES } from "../requests/bearer.js";
import { toWithdrawalId } from "../requests/withdrawal-id.js";

const hash = z.string().transform((text) => parseHash32(text));
const address = z.string().transform((text) => parseAddress(text));
const customerId = z.string().transform((text) => parseCustomerId(text));
const depositId = z.string().min(1).max(100);
const withdrawalId = z.string().min(1).max(100).transform(toWithdrawalId);

/** Accounts of the exchange itself that an operator may post to. */
const OPERATOR_ACCOUNTS: ReadonlySet<string> = new Set([
  DEPOSIT_ADDRESSES,
  COLD_STORAGE,
  BREAK,
  SUSPENSE,
  OPENING_CAPITAL,
  ADJUSTMENT,
  NETWORK_FEE,
  WRITE_OFF,
  WITHDRAWAL_FEES,
]);
const CUSTOMER_ACCOUNT = /^liability:customer:[A-Za-z0-9_.:-]{1,64}$/;
const WALLET_ACCOUNT = /^asset:wallet:0x[0-9a-f]{40}$/;
const account = z
  .string()
  .refine(
    (text) =>
      OPERATOR_ACCOUNTS.has(text) || CUSTOMER_ACCOUNT.test(text) || WALLET_ACCOUNT.test(text),
    {
      error:
        `one of ${[...OPERATOR_ACCOUNTS].join(", ")}, asset:wallet:<address> ` +
        "or liability:customer:<id>",
    },
  )
  .transform((text) => text as AccountCode);
const amountAtoken = z
  .string()
  .regex(/^[1-9][0-9]{0,77}$/, "a positive whole number of atoken")
  .transform((text) => BigInt(text))
  .refine((amount) => amount <= MAX_WORD, "more than any amount on the chain can be");

/** Terms of a decision as stored: amounts are decimal text. */
const decisionTerms = z.discriminatedUnion("action", [
  /** This recovered payment was the payment of that request. */
  z.strictObject({ action: z.literal("link-payment"), hash, withdrawalId }),
  /** It was the payment of a request that the ledger lost: it is booked with its key. */
  z.strictObject({
    action: z.literal("claim-payment"),
    hash,
    customerId,
    idempotencyKey: z.string().regex(/^[\x20-\x7e]{1,128}$/),
  }),
  /** Nobody is found whose payment it was. */
  z.strictObject({ action: z.literal("write-off-payment"), hash }),
  /** This frozen request is none of the recovered payments: pay it. */
  z.strictObject({ action: z.literal("pay-withdrawal"), withdrawalId }),
  /** Whose an address is that a recovery found. */
  z.strictObject({
    action: z.literal("assign-address"),
    address,
    customerId,
    /** Also the deposits that went to suspense for want of a customer. */
    withDeposits: z.boolean(),
  }),
  /** A deposit in suspense is this customer's. */
  z.strictObject({
    action: z.literal("assign-deposit"),
    depositId,
    customerId,
  }),
  /** Whether a token's payment that was mined without its transfer paid. */
  z.strictObject({ action: z.literal("decide-transfer"), withdrawalId, isPaid: z.boolean() }),
  /** Who bears what a chain that lost blocks took otherwise than a payment had ended. */
  z.strictObject({
    action: z.literal("accept-remined"),
    name: z.string().regex(/^[\x21-\x7e]{1,100}-r[0-9]{1,9}$/),
    account,
  }),
  /** Coins that left one of our addresses unasked are explained by this account. */
  z.strictObject({ action: z.literal("accept-outflow"), hash, account }),
  /** Any other correction, with its evidence. */
  z.strictObject({
    action: z.literal("adjust"),
    key: z.string().regex(/^[A-Za-z0-9_.:-]{1,100}$/),
    debit: account,
    credit: account,
    /** TOKEN where absent. */
    asset: z
      .string()
      .regex(/^[A-Za-z0-9_.:-]{1,32}$/)
      .optional(),
    /** In the asset's smallest unit; named for the coin, which was the only one. */
    amountAtoken,
    /** Transaction that proves it. */
    hash: hash.optional(),
    /** Block from which on it counts; needed where coins on the chain are meant. */
    height: z.int().min(0).optional(),
    /** Deposit address that is meant. */
    address: address.optional(),
    /** Deposit in suspense whose coins are taken. */
    depositId: depositId.optional(),
    /** Frozen request that ends with it: what it held is taken before anybody can ask for it again. */
    withdrawalId: withdrawalId.optional(),
  }),
]);

/** Terms as typed or read from the table. */
export type StoredTerms = z.input<typeof decisionTerms>;

/** That a frozen sweep goes on: never proposed, as the command that looks at the chain decides it. */
export interface SweepReleaseTerms {
  readonly action: "release-sweep";
  readonly sweepId: number;
  /** Another transaction used its nonce. */
  readonly isNonceUsed: boolean;
}

/** Parsed terms. */
export type DecisionTerms = z.output<typeof decisionTerms>;

/**
 * Untrusted terms to typed ones.
 * @throws INVALID_DECISION
 */
export function parseTerms(terms: unknown): DecisionTerms {
  const parsed = decisionTerms.safeParse(terms, { reportInput: false });
  if (!parsed.success) {
    const faults = parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
    throw new LedgerError("INVALID_DECISION", faults.join("; "));
  }
  const { data } = parsed;
  if ("account" in data) assertSomebody(data.account);
  if (data.action !== "adjust") return data;
  const sides: readonly string[] = [data.debit, data.credit];
  if (data.debit === data.credit) {
    throw new LedgerError("INVALID_DECISION", "debit and credit are the same account");
  }
  if (data.depositId !== undefined && data.debit !== SUSPENSE) {
    throw new LedgerError(
      "INVALID_DECISION",
      `a deposit is named where ${SUSPENSE} gives its coins`,
    );
  }
  const isBearer = customerOf(data.debit) !== undefined || BEARERS_OF_MOVES.has(data.debit);
  if (data.withdrawalId !== undefined && !isBearer) {
    throw new LedgerError(
      "INVALID_DECISION",
      "a request is named where its customer gives its coins, or, of the treasury's moves, " +
        [...BEARERS_OF_MOVES].join(" or "),
    );
  }
  // Only the side that is given to: a correction takes back what one of a former release gave to nobody.
  // Whether TREASURY may be given anything its moves say, as the correction is carried out.
  if (customerOf(data.credit) !== TREASURY) assertSomebody(data.credit);
  const onChain = sides.some((code) => code === DEPOSIT_ADDRESSES || WALLET_ACCOUNT.test(code));
  if (onChain && (data.hash === undefined || data.height === undefined)) {
    throw new LedgerError(
      "INVALID_DECISION",
      "coins on the chain need their evidence: the transaction and its block",
    );
  }
  if (sides.includes("asset:deposit_addresses") !== (data.address !== undefined)) {
    throw new LedgerError(
      "INVALID_DECISION",
      "asset:deposit_addresses and the deposit address that is meant go together",
    );
  }
  return data;
}

/** @throws INVALID_DECISION for an account of an identifier that is the exchange's own word */
function assertSomebody(code: AccountCode): void {
  const customer = customerOf(code);
  if (customer === undefined || !standsForNobody(customer)) return;
  throw new LedgerError("INVALID_DECISION", `${customer} stands for nobody`);
}

/**
 * What a decision is about: the same subject and key are decided once.
 * @param epoch the ledger's: whether a request is to be paid is asked again after each recovery
 */
export function subjectOf(
  terms: DecisionTerms,
  epoch: number,
): { readonly kind: string; readonly key: string } {
  switch (terms.action) {
    case "link-payment":
    case "claim-payment":
    case "write-off-payment":
      return { kind: "payment", key: terms.hash };
    case "pay-withdrawal":
      return { kind: "withdrawal", key: `${terms.withdrawalId}@${epoch}` };
    case "assign-address":
      return { kind: "address", key: terms.address };
    case "assign-deposit":
      return { kind: "deposit", key: terms.depositId };
    case "decide-transfer":
      return { kind: "transfer", key: terms.withdrawalId };
    case "accept-remined":
      return { kind: "remined", key: terms.name };
    case "accept-outflow":
      return { kind: "outflow", key: terms.hash };
    case "adjust":
  }
  return { kind: "adjustment", key: terms.key };
}
