/**
 * The judgement after a fault, from the outside only: chain, APIs and `reconcile`. Nothing lost,
 * nothing doubled, no published block changed.
 */
import { expect } from "@jest/globals";
import { present } from "../../../chain/errors.js";
import { NATIVE_ASSET, TREASURY } from "../../../ledger/journal/accounts.js";
import type { BlockWitness, ChainBlock, ChainTransaction } from "./chain.js";
import type { FaultExchange } from "./exchange.js";
import { balanceCall, describeMovement, movementOf } from "./movements.js";
import { type Asset, follows, type Request, type Row } from "./promises.js";
import { type RunningKit, runCauseway } from "../kit.js";

/** Withdrawals asked for once more at the end; each repeat is a call, so not all of them. */
const REPEATED_REQUESTS = 5;

/** What was held against what, for the report of a run. */
export interface Figures {
  readonly blocks: number;
  readonly witnessedBlocks: number;
  readonly deposits: number;
  readonly withdrawals: number;
  readonly events: number;
}

/** Waits until all work is done, then checks every promise; throws at the first broken one. */
export async function assertNothingLostOrDoubled(
  kit: RunningKit,
  exchange: FaultExchange,
  witness: BlockWitness,
): Promise<Figures> {
  const figures = await assertMoneyKept(exchange, witness);
  await checkReconciled(kit);
  return figures;
}

/**
 * The same without `reconcile`.
 * @param fromHeight a block before the exchange's first transaction
 */
export async function assertMoneyKept(
  exchange: FaultExchange,
  witness: BlockWitness,
  fromHeight = 0,
): Promise<Figures> {
  await exchange.settled();
  const shown = witness.shown();
  const blocks = await exchange.chain.blocks(fromHeight, await exchange.chain.height());
  expect(witness.contradictions(blocks, shown)).toEqual([]);
  const mined = new Map(blocks.flatMap(({ transactions }) => transactions).map((t) => [t.hash, t]));
  const lost = exchange.payments.filter((payment) => !mined.has(payment.hash));
  expect({ acknowledgedAndLost: lost.map(({ hash }) => hash) }).toEqual({
    acknowledgedAndLost: [],
  });
  const withdrawals = await exchange.list("withdrawals");
  await checkWithdrawals(exchange, withdrawals, blocks);
  const { deposits, reversed } = await checkDeposits(exchange, withdrawals, blocks);
  checkEvents(exchange, { deposits, reversed, withdrawals });
  expect(await exchange.eventsAgain()).toEqual(exchange.events);
  await checkBalances(exchange, deposits, withdrawals);
  return {
    blocks: blocks.length,
    witnessedBlocks: witness.count,
    deposits: deposits.length,
    withdrawals: withdrawals.length,
    events: exchange.events.length,
  };
}

/** Every request exists once, ended as it should, and the hot wallet paid for nothing else. */
async function checkWithdrawals(
  exchange: FaultExchange,
  rows: readonly Row[],
  blocks: readonly ChainBlock[],
): Promise<void> {
  const { requests, hotWallet, chain, token } = exchange;
  const moves = rows.filter(isMove);
  const asked = rows.filter((row) => !isMove(row));
  expect(idsOf(asked)).toEqual(idsOf(requests));
  const rowOf = new Map(rows.map((row) => [row["id"], row]));
  const endOf = (request: Request): string => endWith(request, rowOf.get(request.id));
  const wrong = requests.filter((request) => rowOf.get(request.id)?.["status"] !== endOf(request));
  expect(wrong.map((request) => ({ ...request, row: rowOf.get(request.id) }))).toEqual([]);

  const sent = blocks.flatMap(({ transactions }) =>
    transactions.filter(({ from }) => from === hotWallet),
  );
  expect(sent.map(({ nonce }) => nonce)).toEqual(sent.map((_, index) => index));
  const isPaid = (request: Request): boolean =>
    (request.minedAgain ?? (endOf(request) === "settled" ? "paid" : "unpaid")) === "paid";
  const paid = requests.filter(isPaid);
  // A cancellation costs a nonce; where a ledger came back older, nothing tells whose.
  const isNothing = ({ to, valueAtoken }: ChainTransaction) =>
    to === hotWallet && valueAtoken === 0n;
  expect(sent.filter(isNothing).length).toBeLessThanOrEqual(exchange.unwantedCount);
  const paying = sent.filter(
    (transaction) => !isNothing(transaction) && !exchange.writtenOff.has(transaction.hash),
  );
  const describe = (transaction: ChainTransaction) => describeTransaction(transaction, token);
  expect(paying.map(describe).toSorted()).toEqual(
    [
      ...paid.map((request) =>
        request.minedAgain === undefined
          ? describePaid(request, rowOf.get(request.id))
          : // Its row names what had ended it.
            describe(
              present(
                sent.find((one) => isOf(one, request, token)),
                request.key,
              ),
            ),
      ),
      ...moves.filter(({ status }) => status === "settled").map(describeMove),
    ].toSorted(),
  );
  const fresh = paid.filter(({ kind }) => kind === "fresh");
  const balances = await chain.results(
    fresh.map(({ asset, to }) => balanceCall({ asset, address: to }, token)),
  );
  expect(balances.map((balance) => BigInt(String(balance)))).toEqual(
    fresh.map(({ amountUnits }) => amountUnits),
  );
  for (const request of requests.slice(-REPEATED_REQUESTS)) {
    expect(await exchange.ask(request)).toBe(request.id);
  }
}

function idsOf(requests: readonly { readonly id?: string | undefined }[]): string[] {
  return requests.map(({ id }) => String(id)).toSorted();
}

/** What the treasury pays for the exchange itself: judged by `lab/treasury-judge.ts`. */
function isMove(row: Row): boolean {
  return row["customerId"] === TREASURY;
}

function describeMove(row: Row): string {
  const { txHash, nonce, amountUnits, asset } = row;
  return `${txHash} nonce ${nonce}: ${amountUnits} ${asset} to ${String(row["to"]).toLowerCase()}`;
}

/** What becomes of a request that nothing was lost of, or the deposit that covered it. */
function endWith({ kind, isToldCancelled }: Request, row: Row | undefined): string {
  if (kind === "unwanted") {
    // Whichever is mined, the payment or the transfer of nothing in its place.
    return row?.["status"] === "settled" && isToldCancelled !== true ? "settled" : "cancelled";
  }
  return { fresh: "settled", own: "settled", refusing: "failed", uncovered: "rejected" }[kind];
}

function isOf(transaction: ChainTransaction, request: Request, token: string | undefined): boolean {
  return describeMovement(movementOf(transaction, token)) === describeMovement(request);
}

function describeTransaction(transaction: ChainTransaction, token: string | undefined): string {
  const { hash, nonce } = transaction;
  return `${hash} nonce ${nonce}: ${describeMovement(movementOf(transaction, token))}`;
}

function describePaid(request: Request, row: Row | undefined): string {
  const { txHash, nonce } = row ?? {};
  return `${String(txHash)} nonce ${String(nonce)}: ${describeMovement(request)}`;
}

/**
 * Each coin that reached a customer's address is one row, credited unless it came too early. Rows that
 * are reversed are evidence: what was of a block that the chain has lost is among them, and nothing else.
 * @returns rows that stand, and rows that are reversed
 */
async function checkDeposits(
  exchange: FaultExchange,
  withdrawals: readonly Row[],
  blocks: readonly ChainBlock[],
): Promise<{ readonly deposits: readonly Row[]; readonly reversed: readonly Row[] }> {
  const all = await exchange.list("deposits");
  const hashes = new Set(blocks.map(({ hash }) => hash));
  const isReversed = (row: Row) => row["status"] === "reversed";
  const isGas = (row: Row) => exchange.gasHashes.has(String(row["txHash"]));
  const rows = all.filter((row) => !isReversed(row) && !isGas(row));
  const reversed = all.filter(isReversed);
  const isThere = (row: Row) => hashes.has(String(row["blockHash"]));
  const ofLostBlocks = rows.filter((row) => !isThere(row));
  const reversedForNothing = reversed.filter(isThere);
  expect({ ofLostBlocks, reversedForNothing }).toEqual({
    ofLostBlocks: [],
    reversedForNothing: [],
  });
  const ownPayouts = exchange.requests.filter(({ kind }) => kind === "own");
  const hashOf = new Map(withdrawals.map((row) => [row["id"], String(row["txHash"])]));
  const expected = [
    ...exchange.payments,
    ...ownPayouts.map((request) => ({
      ...request,
      hash: hashOf.get(request.id) ?? "none",
      isEarly: false,
    })),
  ].map(({ hash, isEarly, ...movement }) => {
    const owner = exchange.ownerOf(movement.to);
    const end = isEarly ? "booked" : "credited";
    return `${hash}: ${describeMovement(movement)} of ${owner}, ${end}`;
  });
  const early = new Set(exchange.payments.filter((p) => p.isEarly).map(({ hash }) => hash));
  const found = rows.map((row) => {
    const isBooked = ["credited", "suspense"].includes(String(row["status"]));
    const status = early.has(String(row["txHash"])) && isBooked ? "booked" : row["status"];
    const to = String(row["address"]).toLowerCase();
    const coins = `${row["amountUnits"]} ${row["asset"]}`;
    return `${row["txHash"]}: ${coins} to ${to} of ${row["customerId"]}, ${status}`;
  });
  expect(found.toSorted()).toEqual(expected.toSorted());
  return { deposits: rows, reversed };
}

/**
 * One credit event for each credited row and at most one for each that is reversed, which is told,
 * too; one end for each withdrawal; numbers are gapless.
 */
function checkEvents(
  { events, released }: FaultExchange,
  {
    deposits,
    reversed,
    withdrawals,
  }: Readonly<Record<"deposits" | "reversed" | "withdrawals", readonly Row[]>>,
): void {
  expect(events[0]?.seq).toBe(1);
  expect(events.filter((event, index) => !follows(events[index - 1], event))).toEqual([]);
  const ids = (pattern: RegExp, key: string) =>
    events.filter(({ type }) => pattern.test(type)).map(({ data }) => String(data[key]));
  const credited = deposits
    .filter((row) => row["status"] === "credited")
    .map((row) => String(row["id"]));
  const told = ids(/^deposit\.credited$/, "depositId");
  const gone = idsOf(reversed).filter((id) => told.includes(id));
  expect(told.toSorted()).toEqual([...credited, ...gone].toSorted());
  const toldGone = new Set(ids(/^deposit\.reversed$/, "depositId"));
  expect(gone.filter((id) => !toldGone.has(id))).toEqual([]);
  const ended = ids(/^withdrawal\.(settled|failed|rejected|cancelled)$/, "withdrawalId");
  expect(ended.toSorted()).toEqual(idsOf(withdrawals));
  for (const step of ["accepted", "slotted", "signed", "settled"]) {
    const taken = ids(new RegExp(`^withdrawal\\.${step}$`), "withdrawalId").filter(
      (id) => !released.has(id),
    );
    expect({ step, twice: taken.length - new Set(taken).size }).toEqual({ step, twice: 0 });
  }
  expect(includedAgain(events).filter((id) => !released.has(id))).toEqual([]);
}

/**
 * Withdrawals that were included once more though they had not frozen in between. One whose block the chain
 * has lost freezes, and is included again when a person has looked: the event names the other block.
 */
function includedAgain(events: FaultExchange["events"]): readonly string[] {
  const included = new Set<string>();
  const again: string[] = [];
  for (const { type, data } of events) {
    const id = String(data["withdrawalId"]);
    if (type === "withdrawal.frozen") included.delete(id);
    if (type !== "withdrawal.included") continue;
    if (included.has(id)) again.push(id);
    included.add(id);
  }
  return again;
}

/** Credits minus payouts, to the last unit of each asset. */
async function checkBalances(
  exchange: FaultExchange,
  deposits: readonly Row[],
  withdrawals: readonly Row[],
): Promise<void> {
  for (const customerId of exchange.customers) {
    for (const asset of exchange.assets) {
      const isOwn = (row: Row) => row["asset"] === asset && row["customerId"] === customerId;
      const sum = (rows: readonly Row[], status: string) =>
        rows
          .filter((row) => row["status"] === status && isOwn(row))
          .reduce((total, row) => total + BigInt(String(row["amountUnits"])), 0n);
      const leftUnits =
        sum(deposits, "credited") -
        sum(withdrawals, "settled") -
        minedOtherwise(exchange, withdrawals, { customerId, asset });
      const left = { available: String(leftUnits), held: "0", pending: "0" };
      expect({ customerId, ...(await exchange.balance(customerId, asset)) }).toEqual({
        customerId,
        asset,
        ...namedFor("Units", left),
        ...(asset === NATIVE_ASSET && namedFor("Atoken", left)),
      });
    }
  }
}

function namedFor(unit: string, amounts: Readonly<Record<string, string>>) {
  return Object.fromEntries(
    Object.entries(amounts).map(([name, amount]) => [`${name}${unit}`, amount]),
  );
}

/** What a person has charged a customer with, less what was given back. */
function minedOtherwise(
  { requests }: FaultExchange,
  withdrawals: readonly Row[],
  { customerId, asset }: { readonly customerId: string; readonly asset: Asset },
): bigint {
  const rowOf = new Map(withdrawals.map((row) => [row["id"], row]));
  let sumUnits = 0n;
  for (const request of requests) {
    if (request.customerId !== customerId || request.asset !== asset) continue;
    const isSettled = rowOf.get(request.id)?.["status"] === "settled";
    if (request.minedAgain === "paid" && !isSettled) sumUnits += request.amountUnits;
    if (request.minedAgain === "unpaid" && isSettled) sumUnits -= request.amountUnits;
  }
  return sumUnits;
}

async function checkReconciled(kit: RunningKit): Promise<void> {
  const { code, stdout, stderr } = await runCauseway(kit, ["reconcile", "--json"]);
  expect({ code, stderr, stdout: code === 0 ? "" : stdout }).toEqual({
    code: 0,
    stderr: "",
    stdout: "",
  });
  const report = JSON.parse(stdout) as Record<string, unknown>;
  expect(report["clean"]).toBe(true);
  expect(report["halted"] ?? null).toBeNull();
}
