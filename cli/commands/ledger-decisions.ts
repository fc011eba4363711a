/**
 * `causeway ledger ...`: what a person decides about the books. The rules are in ledger/decisions; here
 * are the flags, and who said so.
 */
import { userInfo } from "node:os";
import { parseStrictAddress, toChecksumAddress } from "../../chain/address.js";
import { MAX_REASON_CHARACTERS, wholeLine } from "../../chain/evm/foreign-text.js";
import type { Height } from "../../chain/hex.js";
import { atokenToToken } from "../../chain/units.js";
import { watcherConfigFile } from "../../deposit-watcher/config.js";
import {
  approve,
  type Decision,
  type DecisionChain,
  listDecisions,
  propose,
  refuse,
} from "../../ledger/decisions/decision-log.js";
import type { StoredTerms } from "../../ledger/decisions/decision.js";
import { type OpenMatters, readOpenMatters } from "../../ledger/decisions/open-matters.js";
import { isKnownCustomer } from "../../ledger/deposits/deposit-queries.js";
import { incidentText, openIncident } from "../../ledger/incidents.js";
import { closeIfBehind } from "../../ledger/guard/ledger-guard.js";
import {
  transactionsSince,
  type WalletTransaction,
} from "../../ledger/withdrawals/operator-decisions.js";
import { loadConfig } from "../../runtime/config/config.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { NATIVE_ASSET } from "../../ledger/journal/accounts.js";
import { amountText } from "../amount-text.js";
import { CliError } from "../errors.js";
import {
  MAX_RECOVERED_BLOCKS,
  readPayment,
  readWalletTransactions,
} from "./wallets/wallet-transactions.js";
import { withLedgerAlone } from "../ledger/ledger-alone.js";
import { toJson } from "../command-context.js";
import { type LedgerCommand, type OpenedLedger, withLedger } from "../ledger/ledger-tools.js";

/** Who decides, and why, as typed. */
export interface DecisionOptions {
  readonly reason?: string;
  readonly operator?: string;
}

/** Rows that one command prints at most. */
const MAX_ROWS = 1_000;

/**
 * Proposes a decision; where one person is enough it is carried out at once.
 * @returns 0
 */
export async function runDecide(
  command: LedgerCommand,
  terms: StoredTerms,
  options: DecisionOptions,
): Promise<number> {
  const { home, env, portOffset } = command;
  const reason = readReason(options.reason ?? "");
  const operator = operatorName(options.operator);
  const config = loadConfig({ home, env, portOffset }, watcherConfigFile);
  const needsSecond = config.ledger["two-persons"];
  const inLowerCase = withAccounts(terms);
  return withLedgerAlone(command, async ({ database }) => {
    await closeIfBehind(database, home);
    const proposal = { terms: inLowerCase, reason, operator, needsSecond };
    const newCustomer = await newCustomerOf(database, inLowerCase);
    const decision = await propose(database, proposal, chainOf(command));
    printDecision(command, decision, newCustomer);
    return 0;
  });
}

/** Wallets are shown with their checksum, and their accounts are called in lower case. @throws USAGE */
function withAccounts(terms: StoredTerms): StoredTerms {
  if (terms.action === "adjust") {
    return { ...terms, debit: accountOf(terms.debit), credit: accountOf(terms.credit) };
  }
  return "account" in terms ? { ...terms, account: accountOf(terms.account) } : terms;
}

function accountOf(text: string): string {
  const [, prefix, address] = /^(asset:wallet:)(0x[0-9a-fA-F]{40})$/.exec(text) ?? [];
  if (prefix === undefined) return text;
  try {
    return `${prefix}${parseStrictAddress(address)}`;
  } catch (cause) {
    throw new CliError("USAGE", `${text}: the checksum of the address is wrong.`, { cause });
  }
}

/** Approves or refuses a proposal. @returns 0 */
export async function runSettleProposal(
  command: LedgerCommand,
  id: string,
  options: { readonly operator?: string; readonly isApproved: boolean },
): Promise<number> {
  if (!/^[0-9]{1,15}$/.test(id)) throw new CliError("USAGE", "a decision is named by its number.");
  const operator = operatorName(options.operator);
  return withLedgerAlone(command, async ({ database }) => {
    await closeIfBehind(database, command.home);
    const settled = { id: Number(id), operator };
    const proposals = await listDecisions(database, { status: "proposed", limit: MAX_ROWS });
    const proposal = proposals.find((one) => one.id === settled.id);
    const newCustomer =
      options.isApproved && proposal ? await newCustomerOf(database, proposal.terms) : undefined;
    const decision = options.isApproved
      ? await approve(database, settled, chainOf(command))
      : await refuse(database, settled);
    printDecision(command, decision, newCustomer);
    return 0;
  });
}

/** Lists decisions, newest last. @returns 0 */
export async function runListDecisions(command: LedgerCommand): Promise<number> {
  return withLedgerAlone(command, async ({ database }) => {
    const decisions = await listDecisions(database, { limit: MAX_ROWS });
    if (command.json) command.print(toJson({ decisions }));
    else for (const decision of decisions) command.print(decisionLine(decision));
    if (!command.json && decisions.length === 0) command.print("Nobody decided anything.");
    return 0;
  });
}

/**
 * Lists what waits for a person.
 * @returns 0 when nothing does, else 1
 */
export async function runOpenMatters(command: LedgerCommand): Promise<number> {
  return withLedgerAlone(command, async ({ database }) => {
    const open = await readOpenMatters(database, MAX_ROWS);
    const incident = await openIncident(database);
    // First: nothing else can be judged before a recovery.
    const halt = incident === undefined ? [] : [incidentText(incident)];
    const lines = [...halt, ...openLines(open)];
    if (command.json) command.print(toJson({ ...open, incident: incident ?? null }));
    else for (const line of lines) command.print(line);
    if (!command.json && lines.length === 0) command.print("Nothing waits for a person.");
    return lines.length === 0 ? 0 : 1;
  });
}

/** Why, for the record, without white space around it. @throws USAGE */
export function readReason(text: string): string {
  const reason = text.trim();
  if (reason !== "" && reason.length <= MAX_REASON_CHARACTERS.record) return reason;
  throw new CliError(
    "USAGE",
    `--reason must say why, in at most ${MAX_REASON_CHARACTERS.record} characters: it is kept for ever.`,
  );
}

/**
 * What is written down of what the API does, too, in as many characters as there: on one line, cleaned.
 * @throws USAGE
 */
export function readApiReason(text: string): string {
  const { api: max } = MAX_REASON_CHARACTERS;
  const words = wholeLine(text, max);
  if (words !== undefined) return words;
  throw new CliError("USAGE", `--reason must say why, in at most ${max} characters.`);
}

/** Who decides, for the record: the flag, else the user of this process. */
export function operatorName(flag: string | undefined): string {
  if (flag !== undefined) {
    if (/^[\x20-\x7e]{1,100}$/.test(flag)) return flag;
    throw new CliError("USAGE", "--operator takes 1-100 printable characters.");
  }
  try {
    return userInfo().username;
  } catch {
    // Some containers have users without a name.
    return "operator";
  }
}

/** The home's node; nobody is asked before a decision needs it. */
function chainOf(command: LedgerCommand): DecisionChain {
  const { signal } = command;
  return {
    hasDone: (payment) =>
      withLedger(command, async (opened) => {
        const receipt = await opened.node.getTransactionReceipt(payment.hash, { signal });
        return receipt === undefined
          ? hasCosmosDone(opened, payment, signal)
          : receipt.status === 1;
      }),
    blockOf: (hash) =>
      withLedger(command, async ({ node }) => {
        return (await node.getTransactionReceipt(hash, { signal }))?.blockHash;
      }),
    paidBy: (asked) => withLedger(command, ({ node }) => readPayment(node, asked, { signal })),
  };
}

/** By the wallet's transactions: in the block in which it was found, else wherever its nonce was used. */
async function hasCosmosDone(
  { node, database }: OpenedLedger,
  { hash, wallet, nonce, height }: Parameters<DecisionChain["hasDone"]>[0],
  signal: AbortSignal,
): Promise<boolean> {
  const to = await node.blockNumber({ signal });
  const chain = {
    nonceAt: (at: Height) => node.getTransactionCount(wallet, at, { signal }),
    transactions: (range: { readonly from: Height; readonly to: Height }) =>
      readWalletTransactions(node, wallet, { ...range, signal, maxBlocks: MAX_RECOVERED_BLOCKS }),
  };
  const isThere = (found: readonly WalletTransaction[]) =>
    found.some((one) => one.hash === hash && one.isSuccess);
  if (height <= to && isThere(await chain.transactions({ from: height, to: height }))) return true;
  return isThere(await transactionsSince(database, { wallet, nonce, from: 0, to }, chain, isThere));
}

function printDecision(
  command: LedgerCommand,
  decision: Decision,
  newCustomer: string | undefined,
): void {
  if (command.json) return command.print(toJson({ decision, newCustomer: newCustomer ?? null }));
  command.print(decisionLine(decision));
  if (newCustomer === undefined) return;
  const isMade = decision.status === "done";
  command.print(
    `the ledger had no customer ${newCustomer}` +
      (isMade
        ? " before: if the name is mistyped, ledger adjust gives the coins to the right one"
        : " yet"),
  );
}

/**
 * The customer that a decision makes, because the ledger has none of that name: a lost ledger has to learn
 * of all of them anew, and coins that go to a name that was mistyped are nobody's.
 */
async function newCustomerOf(sql: Sql, terms: Decision["terms"]): Promise<string | undefined> {
  if (terms.action !== "assign-address" && terms.action !== "assign-deposit") return undefined;
  const { customerId } = terms;
  return (await isKnownCustomer(sql, customerId)) ? undefined : customerId;
}

function decisionLine(decision: Decision): string {
  const { id, status, terms, proposedBy, decidedBy, reason } = decision;
  const { action, ...rest } = terms;
  const fields = Object.entries(rest).map(([name, value]) => `${name} ${value}`);
  // The reason is its proposer's.
  const by = decidedBy === proposedBy ? "" : "proposed ";
  const next =
    status === "proposed"
      ? `; another person: causeway ledger approve ${id}`
      : by && `; ${status === "refused" ? status : "approved"} by ${decidedBy}`;
  return `${id} ${status} ${action} ${fields.join(", ")}; ${by}by ${proposedBy}: ${reason}${next}`;
}

function openLines(open: OpenMatters): string[] {
  return [
    ...open.payments.map((payment) => {
      const { hash, height, destination, contract, amountUnits, recipientCount } = payment;
      const only =
        destination === undefined ? "no address that it names" : toChecksumAddress(destination);
      const to = recipientCount > 1 ? `${recipientCount} addresses` : only;
      const amount = amountText(contract ?? NATIVE_ASSET, amountUnits);
      return (
        `recovered payment ${hash} of block ${height}: ${amount} to ${to}: link-payment or ` +
        "write-off-payment"
      );
    }),
    ...open.addresses.map(
      ({ index, address, asset, suspenseUnits, isAssigned }) =>
        `address ${toChecksumAddress(address)} (index ${index}) has ` +
        `${isAssigned ? "its" : "no"} customer, ${amountText(asset, suspenseUnits)} of it in ` +
        `suspense: ${isAssigned ? `assign-deposit (deposits list --address ${address})` : "assign-address"}`,
    ),
    ...open.frozen.map(({ id, reason }) => `withdrawal ${id} is frozen: ${reason}`),
    ...open.outflows.map(
      ({ hash, asset, amountUnits, feeAtoken, height }) =>
        `outflow ${hash} of block ${height} (${amountText(asset, amountUnits)}, fee ` +
        `${atokenToToken(feeAtoken)}) was asked for by nobody: accept-outflow`,
    ),
    ...open.remined.map(
      ({ name, withdrawalId, customerId, bearer, status, hash, height, asset, takenUnits }) => {
        const isTaken = takenUnits > 0n;
        const amount = amountText(asset, isTaken ? takenUnits : -takenUnits);
        const what =
          withdrawalId === undefined
            ? `recovered payment ${hash} is ${status}, and`
            : `withdrawal ${withdrawalId} of ${customerId} ended as ${status}, and ${hash}`;
        return (
          `${what} ${isTaken ? "took" : "did not take"} ${amount} in block ${height}: ` +
          `accept-remined ${name} --account ${bearer}, or another`
        );
      },
    ),
    ...open.givenGas.map(
      ({ hash, address, amountAtoken }) =>
        `gas of ${amountAtoken} atoken that ${hash} paid to ${toChecksumAddress(address)} was given from ` +
        "suspense, and is in transit until it is back: adjust --debit <what it was given to, or " +
        "expense:write_off> --credit liability:suspense",
    ),
    ...open.proposals.map(decisionLine),
  ];
}
