import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { renderExplained, renderReport } from "../../../../cli/ledger/reconcile-report.js";
import type { Address } from "../../../../chain/address.js";
import type { Hash32 } from "../../../../chain/hex.js";
import {
  customerAccount,
  heldAccount,
  HOT_WALLET,
  NATIVE_ASSET,
  NETWORK_FEE,
  parseCustomerId,
  walletAccount,
} from "../../../../ledger/journal/accounts.js";
import { postJournal } from "../../../../ledger/journal/journal.js";
import { type ExplainedReport, explainBreaks } from "../../../../ledger/books/break-causes.js";
import { reconcile, type ReconcileReport } from "../../../../ledger/books/reconcile.js";
import { lastRun } from "../../../../ledger/books/reconcile-runs.js";
import { reconcileOnce } from "../../../../deposit-watcher/reconcile-loop.js";
import { bookWalletPast } from "../../../../ledger/blocks/wallet-flows.js";
import { readCursor } from "../../../../ledger/watch/watch-cursor.js";
import type { SqlDatabase } from "../../../../runtime/sql/sql.js";
import { settleSlots } from "../../../../ledger/withdrawals/slot-outcomes.js";
import { toWithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { createReconcileChain } from "../../../../rpc-client/reconcile-chain.js";
import { testAddress } from "../../../helpers/chains/fake-chain.js";
import { registerTestWallets, silentLog } from "../../../helpers/services/ledger.js";
import { storeSigned } from "../../../helpers/services/signed-payment.js";
import { derivation, HOT, STRANGER, WatcherBench } from "../../../helpers/services/watcher.js";

let bench: WatcherBench;
beforeEach(async () => {
  bench = await WatcherBench.open();
});
afterEach(() => bench.close());

const { signal } = new AbortController();
const alice = parseCustomerId("alice");

async function run(): Promise<ReconcileReport> {
  return (await explain()).report;
}

async function explain(): Promise<ExplainedReport> {
  const chain = createReconcileChain(bench.node, signal);
  const report = await reconcile(bench.ledger.owner, chain);
  return explainBreaks(bench.ledger.owner, chain, report);
}

/** Credits alice with 1,000 and lets nothing wait. */
async function fund(): Promise<Address> {
  const { address } = await bench.register("alice");
  bench.start();
  bench.pay([address, 1_000n]);
  bench.chain.mine();
  await bench.caughtUp();
  return address;
}

it("never takes a missing balance for zero, or for its neighbour's", async () => {
  await fund();
  const chain = createReconcileChain(bench.node, signal);
  const short: typeof chain = {
    ...chain,
    balances: async (queries) => (await chain.balances(queries)).slice(0, -1),
  };
  await expect(reconcile(bench.ledger.database, short)).rejects.toMatchObject({
    code: "MISSING_ANSWER",
  });
});

/** A withdrawal as the worker leaves it after signing: held, slotted, one attempt. */
async function sign(
  id: string,
  amountAtoken: bigint,
  hash: Hash32,
  nonce: number,
  cancelHash?: Hash32,
): Promise<void> {
  await bench.ledger.owner.transaction(async (tx) => {
    const payment = { id, asset: NATIVE_ASSET, wallet: HOT, destination: STRANGER, nonce, hash };
    const slot = await storeSigned(tx, { ...payment, amountUnits: amountAtoken });
    if (cancelHash !== undefined) {
      await tx.query(
        `INSERT INTO withdrawal_attempt (slot_id, n, kind, raw, hash, gas_limit, gas_price_atoken)
         VALUES ($1, 1, 'cancel', '0x01', $2, 21, 2)`,
        [slot, cancelHash],
      );
    }
    await postJournal(tx, {
      kind: "withdrawal.hold",
      idemKey: `withdrawal:${id}:hold`,
      effectiveHeight: null,
      postings: [
        {
          asset: NATIVE_ASSET,
          debit: customerAccount(alice),
          credit: heldAccount(alice),
          amountUnits: amountAtoken,
        },
      ],
    });
  });
}

/** The worker's settlement of a mined withdrawal. */
async function settle(id: string, amountAtoken: bigint, hash: Hash32, height: number) {
  await bench.ledger.owner.transaction(async (tx) => {
    await tx.query(`UPDATE withdrawal SET status = 'settled' WHERE id = $1`, [id]);
    await tx.query(
      `UPDATE nonce_slot SET outcome = 'paid', mined_hash = $2 WHERE withdrawal_id = $1`,
      [id, hash],
    );
    await postJournal(tx, {
      kind: "withdrawal.settle",
      idemKey: `withdrawal:${id}:end`,
      effectiveHeight: height,
      postings: [
        {
          asset: NATIVE_ASSET,
          debit: heldAccount(alice),
          credit: HOT_WALLET,
          amountUnits: amountAtoken,
        },
        { asset: NATIVE_ASSET, debit: NETWORK_FEE, credit: HOT_WALLET, amountUnits: 21n },
      ],
    });
  });
}

const SECOND = testAddress(0x408);

/**
 * Parts of a comparison that has begun when something is done: before its first transaction. `SECOND` was
 * paid 10 in a block that is booked, and no watcher runs any more.
 */
async function paidBefore(work: () => Promise<unknown>) {
  const { database } = bench.ledger;
  const running = bench.start();
  bench.pay([SECOND, 10n]);
  await bench.caughtUp();
  await running.stop();
  const late: SqlDatabase = {
    query: (text, parameters) => database.query(text, parameters),
    transaction: async (read) => {
      await work();
      return database.transaction(read);
    },
    snapshot: (read, options) => database.snapshot(read, options),
    url: database.url,
    close: () => Promise.resolve(),
  };
  return { database: late, node: bench.node, log: silentLog };
}

describe("reconcile", () => {
  it("is not clean after another block than the booked one, although every balance matches", async () => {
    const { address } = await bench.register("alice");
    const watching = bench.start();
    bench.pay([address, 1_000n]);
    bench.chain.mine();
    await bench.caughtUp();
    await watching.stop();
    expect((await run()).clean).toBe(true);
    const { head } = bench.chain;
    const booked = bench.chain.blocks[head]?.hash ?? "";
    bench.chain.rollBack(head - 1);
    const { hash } = bench.chain.mine();
    const report = await run();
    expect(report.lines.map(({ differenceUnits }) => differenceUnits)).toEqual([0n, 0n]);
    expect(report).toMatchObject({ clean: false, blockHash: booked, otherBlockHash: hash });
    const text = renderReport(report, 0).join("\n");
    expect(text).toContain(`block ${head} is ${hash} on the chain and ${booked} in the books`);
    expect(text).toContain("BREAK");
    await reconcileOnce(
      { database: bench.ledger.database, node: bench.node, log: silentLog },
      signal,
    );
    const kept = await lastRun(bench.ledger.database);
    expect([kept?.clean, kept?.findings.length]).toEqual([false, 1]);
    expect(kept?.findings[0]).toContain(hash);
  });

  it("keeps nothing while the node has not the block of the cursor", async () => {
    await fund();
    bench.chain.rollBack(0);
    await reconcileOnce(
      { database: bench.ledger.database, node: bench.node, log: silentLog },
      signal,
    );
    expect(await lastRun(bench.ledger.database)).toBeUndefined();
  });

  it("has a wallet that was registered until the books were read", async () => {
    const { database } = bench.ledger;
    await reconcileOnce(await paidBefore(() => registerTestWallets(database, SECOND)), signal);
    const last = await lastRun(database);
    const accounts = last?.assets.flatMap((asset) => asset.accounts) ?? [];
    expect(accounts).toContainEqual({
      account: walletAccount(SECOND),
      chainUnits: "10",
      ledgerUnits: "0",
      inFlightUnits: "10",
    });
    expect(last?.clean).toBe(true);
  });

  it("counts a wallet's past once that was booked until the books were read", async () => {
    const { database } = bench.ledger;
    const parts = await paidBefore(async () => {
      const { height } = await readCursor(database);
      const past = { wallet: SECOND, height, amountAtoken: 10n, tokens: [] };
      await database.transaction((tx) => bookWalletPast(tx, past));
    });
    await registerTestWallets(database, SECOND);
    await reconcileOnce(parts, signal);
    expect(await lastRun(database)).toMatchObject({ clean: true, findings: [] });
  });

  it("is clean over opening capital, deposits in every state and announced nothing", async () => {
    const address = await fund();
    bench.pay([address, 77n], [HOT, 500n]);
    await bench.caughtUp();
    const report = await run();
    expect(report).toMatchObject({ clean: true, height: 3, internalBreaks: [] });
    expect(report.lines[1]).toMatchObject({
      account: "asset:deposit_addresses",
      ledgerUnits: 1_000n,
      inFlight: [{ amountUnits: 77n }],
      chainUnits: 1_077n,
      differenceUnits: 0n,
    });
    expect(renderReport(report, 0).join("\n")).toContain("Clean");
  });

  it("explains a mined withdrawal exactly before it is settled, and needs nothing after", async () => {
    await fund();
    const payment = bench.chain.payment(HOT, STRANGER, 250n, 21n);
    await sign("w1", 250n, payment.hash, 0);
    expect((await run()).clean).toBe(true);
    const { height } = bench.chain.mine([payment]);
    await bench.caughtUp();
    const before = await run();
    expect(before).toMatchObject({ clean: true, heldUnits: 250n, availableUnits: 750n });
    expect(before.lines[0]?.inFlight).toMatchObject([{ amountUnits: -271n }]);
    await settle("w1", 250n, payment.hash, height);
    const after = await run();
    expect(after).toMatchObject({ clean: true, heldUnits: 0n });
    expect(after.lines[0]?.inFlight).toEqual([]);
    expect(await bench.ledger.owner.query(`SELECT * FROM foreign_outflow`)).toEqual([]);
  });

  it("explains a transfer of nothing that took a payment's nonce: only its fee left", async () => {
    await fund();
    const payment = bench.chain.payment(HOT, STRANGER, 250n, 21n);
    const cancel = bench.chain.payment(HOT, HOT, 0n, 42n);
    await sign("w1", 250n, payment.hash, 0, cancel.hash);
    const { height } = bench.chain.mine([cancel]);
    await bench.caughtUp();
    const before = await run();
    expect(before).toMatchObject({ clean: true, heldUnits: 250n });
    expect(before.lines[0]?.inFlight).toMatchObject([{ amountUnits: -42n }]);
    const [slot] = await bench.ledger.owner.query<{ id: string }>(`SELECT id FROM nonce_slot`);
    await bench.ledger.owner.query(`UPDATE withdrawal SET status = 'included'`);
    const receipt = {
      slotId: slot?.id ?? "",
      wallet: HOT,
      withdrawalId: toWithdrawalId("w1"),
      hash: cancel.hash,
      blockNumber: height,
      blockHash: bench.chain.blockHash(height),
    };
    await bench.ledger.owner.query(
      `UPDATE nonce_slot SET mined_hash = $1, block_number = $2, block_hash = $3, gas_used = 21,
              effective_gas_price_atoken = 2`,
      [cancel.hash, height, receipt.blockHash],
    );
    await settleSlots(
      bench.ledger.owner,
      [
        {
          ...receipt,
          isSuccess: true,
          isProven: true,
          cancelled: { cause: "request", reason: "asked" },
          gasUsed: 21n,
          effectiveGasPriceAtoken: 2n,
        },
      ],
      { failureFeeAtoken: 0n, rewinds: 0 },
    );
    const after = await run();
    expect(after).toMatchObject({ clean: true, heldUnits: 0n, availableUnits: 1_000n });
    expect(after.lines[0]?.inFlight).toEqual([]);
    expect(await bench.ledger.owner.query(`SELECT * FROM foreign_outflow`)).toEqual([]);
    expect(await bench.ledger.owner.query(`SELECT * FROM deposit WHERE amount_units = 0`)).toEqual(
      [],
    );
    // Something else goes wrong: the transfer is not among the causes.
    const theft = bench.chain.payment(HOT, STRANGER, 3n, 2n);
    bench.chain.mine([theft]);
    await bench.caughtUp();
    const broken = await run();
    const causes = broken.lines[0]?.breaks[0]?.causes.map(({ txHash }) => txHash);
    expect(causes).toEqual([theft.hash]);
  });

  it("names transaction and amount of coins taken from the hot wallet behind its back", async () => {
    await fund();
    const paid = bench.chain.payment(HOT, STRANGER, 100n, 21n);
    await sign("w1", 100n, paid.hash, 0);
    const theft = bench.chain.payment(HOT, STRANGER, 3n, 2n);
    const { height } = bench.chain.mine([paid, theft]);
    await bench.caughtUp();
    await settle("w1", 100n, paid.hash, height);
    const explained = await explain();
    const { report } = explained;
    expect(report.clean).toBe(false);
    expect(report.lines[0]).toMatchObject({
      differenceUnits: -5n,
      breaks: [
        {
          address: HOT,
          causes: [{ txHash: theft.hash, height, chainUnits: -5n, ledgerUnits: 0n }],
        },
      ],
    });
    const text = [...renderReport(report, 0), ...renderExplained(explained)].join("\n");
    expect(text).toContain(theft.hash);
    expect(text).toContain("difference -5 atoken");
    expect(text).not.toContain(paid.hash);
  });

  it("names a withdrawal whose booked amount is not what the chain paid", async () => {
    await fund();
    const payment = bench.chain.payment(HOT, STRANGER, 90n, 21n);
    await sign("w1", 100n, payment.hash, 0);
    const { height } = bench.chain.mine([payment]);
    await bench.caughtUp();
    await settle("w1", 100n, payment.hash, height);
    const report = await run();
    expect(report.lines[0]?.breaks[0]?.causes).toMatchObject([
      { txHash: payment.hash, chainUnits: -111n, ledgerUnits: -121n },
    ]);
  });

  it("sees coins that left a deposit address", async () => {
    const address = await fund();
    const sweep = bench.chain.payment(address, STRANGER, 400n, 21n);
    bench.chain.mine([sweep]);
    await bench.caughtUp();
    const report = await run();
    expect(report.clean).toBe(false);
    expect(report.lines[1]).toMatchObject({
      differenceUnits: -421n,
      breaks: [{ address, causes: [{ txHash: sweep.hash, chainUnits: -421n }] }],
    });
  });

  it("explains an address whose past is not booked yet, and is clean after the backfill", async () => {
    const scout = await bench.register("scout");
    const running = bench.start();
    await bench.caughtUp();
    bench.pay([derivation.addressAt(scout.index + 1), 60n]);
    await bench.caughtUp();
    await running.stop();
    await bench.register("bob");
    const before = await run();
    expect(before.clean).toBe(true);
    expect(before.lines[1]?.inFlight).toMatchObject([{ amountUnits: 60n }]);
    bench.start();
    await bench.backfilled();
    const after = await run();
    expect(after.clean).toBe(true);
    expect(after.lines[1]?.inFlight).toEqual([]);
  });

  it("sees a balance row that does not follow its postings", async () => {
    await fund();
    await bench.ledger.owner.transaction(async (tx) => {
      await tx.query(`ALTER TABLE customer_balance DISABLE TRIGGER customer_balance_guard`);
      await tx.query(`UPDATE customer_balance SET available_units = 1001`);
      await tx.query(`ALTER TABLE customer_balance ENABLE TRIGGER customer_balance_guard`);
    });
    const report = await run();
    expect(report.clean).toBe(false);
    expect(report.internalBreaks).toMatchObject([{ expectedUnits: 1_000n, foundUnits: 1_001n }]);
  });

  it("ignores what is booked above the height it compares at", async () => {
    await fund();
    const payment = bench.chain.payment(HOT, STRANGER, 250n, 21n);
    await sign("w1", 250n, payment.hash, 0);
    bench.chain.dataApiHead = 2;
    const { height } = bench.chain.mine([payment]);
    await settle("w1", 250n, payment.hash, height);
    const report = await run();
    expect(report).toMatchObject({ clean: true, height: 2 });
    expect(report.lines[0]).toMatchObject({ ledgerUnits: 1_000_000n, chainUnits: 1_000_000n });
  });
});
