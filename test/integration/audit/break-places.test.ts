/** Where a break begins, by the books' side of it, and behind many payments that are on their way. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import { parseHash32 } from "../../../chain/hex.js";
import { bisectBreaks, divergenceText } from "../../../ledger/books/break-bisection.js";
import { reconcile } from "../../../ledger/books/reconcile.js";
import {
  DEPOSIT_ADDRESSES,
  OPENING_CAPITAL,
  walletAccount,
} from "../../../ledger/journal/accounts.js";
import { type JournalEntry, postJournals } from "../../../ledger/journal/journal.js";
import { createReconcileChain } from "../../../rpc-client/reconcile-chain.js";
import { HOT, WatcherBench } from "../../helpers/services/watcher.js";

const { signal } = new AbortController();
const forged = (byte: string) => parseHash32(`0x${byte.repeat(32)}`);

let bench: WatcherBench;
let deposit: Address;

beforeAll(async () => {
  bench = await WatcherBench.open();
  bench.start();
  deposit = (await bench.register("alice")).address;
  bench.pay([deposit, 1_000n]);
  for (let block = 0; block < 40; block += 1) bench.chain.mine();
  await bench.caughtUp();
});
afterAll(() => bench.close());

it("is the block of an entry whose transaction is not on the chain", async () => {
  const { database, owner } = bench.ledger;
  const entry = (idemKey: string, rest: Partial<JournalEntry>, debit: string): JournalEntry => ({
    kind: "ledger.adjustment",
    idemKey,
    effectiveHeight: 20,
    ...rest,
    postings: [
      {
        asset: "TOKEN",
        debit: debit as typeof DEPOSIT_ADDRESSES,
        credit: OPENING_CAPITAL,
        amountUnits: 5n,
      },
    ],
  });
  await owner.transaction((tx) =>
    postJournals(tx, [
      entry("forged:1", { memo: forged("aa") }, walletAccount(HOT)),
      entry("forged:2", { memo: forged("ab"), effectiveHeight: 30 }, walletAccount(HOT)),
      entry("forged:3", { memo: `${forged("ac")} ${deposit}` }, DEPOSIT_ADDRESSES),
    ]),
  );
  const chain = createReconcileChain(bench.node, signal);
  const report = await reconcile(database, chain);
  expect(report.clean).toBe(false);
  const found = await bisectBreaks(database, chain, report);
  expect(found.map(divergenceText)).toEqual([
    `${toChecksumAddress(HOT)} differs since block 20: ${forged("aa")}`,
    `${toChecksumAddress(deposit)} differs since block 20: ${forged("ac")}`,
  ]);
});

it("is the block of its cause, however many payments are on their way before it", async () => {
  const { database } = bench.ledger;
  const cause = { txHash: forged("ad"), height: 30, chainUnits: -9n, ledgerUnits: 0n };
  const amounts = { ledgerUnits: 0n, chainUnits: -9n, differenceUnits: -9n };
  const line = { account: walletAccount(HOT), inFlight: [], moreBreaks: 0, ...amounts };
  const broken = { address: HOT, causes: [cause], moreCauses: 0, ...amounts };
  // The books' entries of the test before are part of both sides; one payment in each block to 25.
  const booked = (height: number) => (height >= 30 ? 10n : height >= 20 ? 5n : 0n);
  const chainAt = (height: number) =>
    1_000n + booked(height) - BigInt(Math.min(height, 25)) - (height >= 30 ? 9n : 0n);
  const found = await bisectBreaks(
    database,
    {
      balances: async (asked) => asked.map(({ height }) => chainAt(height)),
      tokenBalances: async () => [],
    },
    { height: 40, lines: [{ ...line, breaks: [broken] }] },
  );
  expect(found).toMatchObject([{ address: HOT, height: 30, causes: [{ txHash: forged("ad") }] }]);
});
