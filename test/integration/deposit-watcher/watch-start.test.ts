/** A new ledger on a chain that exists begins where `watcher.start-height` says. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createReconcileChain } from "../../../rpc-client/reconcile-chain.js";
import { beginWatch, type WatchStart } from "../../../deposit-watcher/watch-start.js";
import { registerTokens } from "../../../ledger/assets/asset-registry.js";
import { HOT_WALLET, NATIVE_ASSET, SUSPENSE } from "../../../ledger/journal/accounts.js";
import { postJournal } from "../../../ledger/journal/journal.js";
import { explainBreaks } from "../../../ledger/books/break-causes.js";
import { reconcile } from "../../../ledger/books/reconcile.js";
import { readCursor } from "../../../ledger/watch/watch-cursor.js";
import { testAddress } from "../../helpers/chains/fake-chain.js";
import { errorLog, registerTestWallets, silentLog } from "../../helpers/services/ledger.js";
import { HOT, OPENING_ATOKEN, STRANGER, WatcherBench } from "../../helpers/services/watcher.js";

/** What the hot wallet holds after its past: 500 came, 200 and a fee of 21 went. */
const HELD_ATOKEN = OPENING_ATOKEN + 279n;

let bench: WatcherBench;
beforeEach(async () => {
  bench = await WatcherBench.open();
  // A past: four blocks, in which the hot wallet got coins and paid some.
  bench.pay([HOT, 500n]);
  bench.chain.mine([bench.chain.payment(HOT, STRANGER, 200n)]);
  bench.pay([STRANGER, 1n]);
  bench.pay([STRANGER, 1n]);
});
afterEach(() => bench.close());

function begin(
  startHeight: string,
  node: WatchStart["node"] = bench.node,
  log = silentLog,
): Promise<void> {
  const identity = { genesisHash: bench.chain.genesisHash, chainId: 6940n };
  const { database } = bench.ledger;
  const { signal } = new AbortController();
  const settings = { identity, startHeight, log, signal };
  return beginWatch({ database, node, ...settings });
}

const cursorHeight = async () => (await readCursor(bench.ledger.database)).height;

async function report() {
  const chain = createReconcileChain(bench.node, new AbortController().signal);
  const found = await reconcile(bench.ledger.database, chain);
  return (await explainBreaks(bench.ledger.database, chain, found)).report;
}

describe("a ledger that has seen no block", () => {
  it("begins behind the head, with the hot wallet's balance as opening capital", async () => {
    await begin("head");
    expect(await cursorHeight()).toBe(4);
    expect(await bench.accountAtoken("equity:opening_capital")).toBe(-HELD_ATOKEN);
    const alice = await bench.register("alice");
    bench.start();
    bench.pay([alice.address, 5n], [HOT, 7n]);
    bench.chain.mine();
    await bench.caughtUp();
    expect(await bench.deposits()).toEqual(["5-0-3 alice credited 5"]);
    expect(await report()).toMatchObject({ clean: true, height: 6 });
    // A second start finds a block booked, and changes nothing.
    await begin("head");
    await begin("2");
    expect(await bench.accountAtoken("equity:opening_capital")).toBe(-HELD_ATOKEN);
  });

  it("begins with the balance of a wallet that is registered meanwhile", async () => {
    const other = testAddress(77);
    bench.pay([other, 9n]);
    let isRegistered = false;
    const node: WatchStart["node"] = {
      ...bench.node,
      async getBalance(...asked) {
        // Another process of the exchange knows one more.
        if (!isRegistered) await registerTestWallets(bench.ledger.database, other);
        isRegistered = true;
        return bench.node.getBalance(...asked);
      },
    };
    await begin("head", node);
    expect(await cursorHeight()).toBe(5);
    expect(await bench.accountAtoken(`asset:wallet:${other}`)).toBe(9n);
    bench.start();
    bench.pay([other, 3n]);
    await bench.caughtUp();
    expect(await report()).toMatchObject({ clean: true, height: 6 });
  });

  it("begins with what wallets hold of tokens that a start before it has listed", async () => {
    const { chain } = bench;
    const token = testAddress(0x70c);
    chain.token = token;
    chain.mine([chain.tokenPayment(STRANGER, { from: undefined, to: HOT, units: 40n })]);
    // Its start height was another one, and its node not as far as the first block.
    const entry = { symbol: "PLAIN", contractAddress: token, decimals: 6 };
    await registerTokens(bench.ledger.database, [entry]);
    await begin("head");
    const { clean, tokens } = await report();
    expect(tokens.map(({ lines }) => lines[0])).toMatchObject([
      { account: `asset:wallet:${HOT}`, ledgerUnits: 40n, chainUnits: 40n },
    ]);
    expect(clean).toBe(true);
  });

  it("begins where the contract of a token does not tell what wallets hold, and says so", async () => {
    const { chain } = bench;
    const contract = testAddress(0x70c);
    chain.token = contract;
    const entries = ["PLAIN", "LATER"].map((symbol, index) => {
      return { symbol, contractAddress: testAddress(0x70c + index), decimals: 6 };
    });
    await registerTokens(bench.ledger.database, entries);
    chain.override = (method) =>
      method === "eth_call" ? { error: { code: 3, message: "execution reverted" } } : undefined;
    const errors: Record<string, unknown>[] = [];
    await begin("head", bench.node, errorLog(errors));
    expect(await cursorHeight()).toBe(4);
    expect(await bench.accountAtoken("equity:opening_capital")).toBe(-HELD_ATOKEN);
    // Of what is not there yet nobody has anything.
    expect(errors).toEqual([
      {
        asset: "PLAIN",
        contract,
        address: HOT,
        height: 4,
        msg: "a token's contract does not tell what a wallet of ours holds",
      },
    ]);
  });

  it("begins at a height, and at block 0 where there is nothing to skip", async () => {
    await begin("0");
    await begin("genesis");
    expect(await cursorHeight()).toBe(-1);
    await begin("3");
    expect(await cursorHeight()).toBe(2);
    bench.start();
    await bench.caughtUp();
    expect(await report()).toMatchObject({ clean: true });
  });

  it("skips no block of an address that is registered already", async () => {
    const alice = await bench.register("alice");
    bench.pay([alice.address, 9n]);
    bench.chain.mine();
    await begin("head");
    expect(await cursorHeight()).toBe(-1);
    bench.start();
    await bench.caughtUp();
    expect(await bench.deposits()).toEqual(["5-0-3 alice credited 9"]);
    expect(await bench.accountAtoken("equity:opening_capital")).toBe(-OPENING_ATOKEN);
  });

  it("names only what came after the beginning when something is missing", async () => {
    await begin("head");
    bench.start();
    await bench.caughtUp();
    await bench.ledger.database.transaction((tx) =>
      postJournal(tx, {
        kind: "wallet.inflow",
        idemKey: "invented",
        effectiveHeight: 4,
        memo: `0x${"ab".repeat(32)}`,
        postings: [{ asset: NATIVE_ASSET, debit: HOT_WALLET, credit: SUSPENSE, amountUnits: 3n }],
      }),
    );
    const { clean, lines } = await report();
    const causes = lines.flatMap(({ breaks }) => breaks.flatMap((found) => found.causes));
    expect(clean).toBe(false);
    expect(causes.map(({ txHash }) => txHash)).toEqual([`0x${"ab".repeat(32)}`]);
  });

  it("waits for a block that the node does not have yet", async () => {
    const waiting = begin("6");
    bench.chain.mine();
    await waiting;
    expect(await cursorHeight()).toBe(5);
  });
});
