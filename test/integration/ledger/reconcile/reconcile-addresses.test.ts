/** Deposit addresses that differ one by one and not in their sum: what one lacks and another has too much. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { encodeReport, renderReport } from "../../../../cli/ledger/reconcile-report.js";
import { type Address, toChecksumAddress } from "../../../../chain/address.js";
import { reconcileOnce } from "../../../../deposit-watcher/reconcile-loop.js";
import { reconcile } from "../../../../ledger/books/reconcile.js";
import { lastRun } from "../../../../ledger/books/reconcile-runs.js";
import { createReconcileChain } from "../../../../rpc-client/reconcile-chain.js";
import { silentLog } from "../../../helpers/services/ledger.js";
import { WatcherBench } from "../../../helpers/services/watcher.js";

let bench: WatcherBench;
beforeEach(async () => {
  bench = await WatcherBench.open();
});
afterEach(() => bench.close());

const { signal } = new AbortController();

/** Breaks that a report lists. */
const LISTED = 20;

/** Addresses with 100 each, and no watcher any more that would look at their balances. */
async function fund(count: number): Promise<readonly Address[]> {
  const addresses: Address[] = [];
  while (addresses.length < count) {
    addresses.push((await bench.register(`customer-${addresses.length}`)).address);
  }
  const running = bench.start();
  bench.pay(...addresses.map((address) => [address, 100n] as const));
  bench.chain.mine();
  await bench.caughtUp();
  await running.stop();
  return addresses;
}

/** Coins that lie at another address than the books say. */
function move(from: Address, to: Address, units: bigint): void {
  const { balanceLies, head } = bench.chain;
  balanceLies.set(`${from}@${head}`, -units);
  balanceLies.set(`${to}@${head}`, units);
}

const report = () => reconcile(bench.ledger.owner, createReconcileChain(bench.node, signal));

/** As the watcher keeps it. */
async function kept() {
  const { database } = bench.ledger;
  await reconcileOnce({ database, node: bench.node, log: silentLog }, signal);
  return lastRun(database);
}

it("is no clean reconciliation, although the account's sum matches", async () => {
  const [alices, bobs] = (await fund(2)) as [Address, Address];
  expect((await report()).clean).toBe(true);
  move(alices, bobs, 5n);
  const found = await report();
  expect(found.lines[1]).toMatchObject({
    account: "asset:deposit_addresses",
    differenceUnits: 0n,
    breaks: [
      { address: alices, ledgerUnits: 100n, chainUnits: 95n, differenceUnits: -5n },
      { address: bobs, ledgerUnits: 100n, chainUnits: 105n, differenceUnits: 5n },
    ],
    moreBreaks: 0,
  });
  expect(found.clean).toBe(false);
  const text = renderReport(found, 0).join("\n");
  for (const address of [alices, bobs]) {
    expect(text).toContain(`BREAK asset:deposit_addresses ${toChecksumAddress(address)}`);
  }
  expect(text).not.toContain("Clean");
  expect(await kept()).toMatchObject({
    clean: false,
    findings: expect.arrayContaining([expect.stringContaining(toChecksumAddress(alices))]),
  });
});

it("counts those that it does not list", async () => {
  const addresses = await fund(LISTED + 2);
  addresses.forEach((from, index) => {
    const to = addresses[index + 1];
    if (index % 2 === 0 && to !== undefined) move(from, to, BigInt(index + 1));
  });
  const found = await report();
  const [, line] = found.lines;
  expect(line).toMatchObject({ differenceUnits: 0n, moreBreaks: 2 });
  expect(line?.breaks.map(({ address }) => address)).toEqual(addresses.slice(0, LISTED));
  expect(found.clean).toBe(false);
  expect(renderReport(found, 0).join("\n")).toContain(
    "BREAK asset:deposit_addresses: 2 more addresses",
  );
  expect(encodeReport(found)).toMatchObject({ clean: false });
  expect((await kept())?.findings).toContain("asset:deposit_addresses: 2 more addresses");
});
