/** Where a break begins, by the books' side of it. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import { parseHash32 } from "../../../chain/hex.js";
import { divergenceText, explainBreaks } from "../../../ledger/books/break-causes.js";
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
  const { divergences } = await explainBreaks(database, chain, report);
  expect(divergences.map(divergenceText)).toEqual([
    `${toChecksumAddress(HOT)} differs since block 20: ${forged("aa")}`,
    `${toChecksumAddress(deposit)} differs since block 20: ${forged("ac")}`,
  ]);
});
