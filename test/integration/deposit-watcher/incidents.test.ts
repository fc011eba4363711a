/** What halts the watcher over one node, and what is none: nothing is credited until an operator resumes. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { keccak256Hex } from "../../../chain/hashes.js";
import { AddressBook } from "../../../deposit-watcher/address-book.js";
import { readinessOf } from "../../../deposit-watcher/readiness.js";
import { resumeCrediting } from "../../../ledger/incidents.js";
import { readFreeze, releaseSigning } from "../../../ledger/requests/signing-freeze.js";
import { createHotWallet } from "../../../ledger/wallets/wallet-lease.js";
import { readCursor } from "../../../ledger/watch/watch-cursor.js";
import { recordIncident } from "../../helpers/services/ledger.js";
import { until } from "../../helpers/until.js";
import { derivation, HOT, STRANGER, WatcherBench } from "../../helpers/services/watcher.js";
import { halted, incidentsOf } from "./told-incidents.js";

let bench: WatcherBench;
beforeEach(async () => {
  bench = await WatcherBench.open();
});
afterEach(() => bench.close());

const wrongHash = keccak256Hex(Buffer.from("wrong"));

describe("incidents", () => {
  it("halt at a parent mismatch, survive a restart and a resume while the cause lasts, and end", async () => {
    const alice = await bench.register("alice");
    const first = bench.start();
    bench.pay([alice.address, 5n]);
    await bench.caughtUp();
    const good = bench.chain.mine();
    bench.chain.dataApiBlocks.set(2, { ...good, parentHash: wrongHash });
    await halted(first, "PARENT_MISMATCH");
    expect(readinessOf(first.watcher.status, 5, performance.now())).toMatchObject({
      ready: false,
      reason: expect.stringContaining("PARENT_MISMATCH"),
    });
    await first.stop();
    const second = bench.start();
    await halted(second, "PARENT_MISMATCH");
    bench.chain.mine();
    expect(await bench.deposits()).toEqual(["1-0-3 alice detected 5"]);
    expect(await resumeCrediting(bench.ledger.database, "test")).toBe(1);
    await until(async () => (await incidentsOf(bench)).length === 2, { timeoutMs: 5_000 });
    expect(await incidentsOf(bench)).toEqual(["PARENT_MISMATCH resolved", "PARENT_MISMATCH open"]);
    bench.chain.dataApiBlocks.clear();
    expect((await readCursor(bench.ledger.database)).height).toBe(1);
    await resumeCrediting(bench.ledger.database, "test");
    await bench.caughtUp();
    expect(await bench.deposits()).toEqual(["1-0-3 alice credited 5"]);
    await until(() => readinessOf(second.watcher.status, 5, performance.now()).ready, {
      timeoutMs: 5_000,
    });
  });

  it("halt when operations do not explain a balance, before anything is credited", async () => {
    const alice = await bench.register("alice");
    const block = bench.chain.mine();
    const invented = bench.chain.payment(STRANGER, alice.address, 1_000n);
    bench.chain.dataApiBlocks.set(block.height, { ...block, transactions: [invented] });
    const running = bench.start();
    await halted(running, "BALANCE_MISMATCH");
    bench.chain.mine();
    bench.chain.mine();
    expect(await bench.deposits()).toEqual([]);
    expect(await bench.accountAtoken("liability:customer:alice")).toBe(0n);
  });

  it("that come while blocks are under way let none of them be booked or credited", async () => {
    const alice = await bench.register("alice");
    bench.pay([alice.address, 5n]);
    for (let block = 0; block < 3; block += 1) bench.chain.mine();
    const { node } = bench;
    const found = { kind: "NODES_DISAGREE", height: 1, message: "found elsewhere" } as const;
    let isOpened = false;
    bench.secondNode = {
      ...node,
      // Asked about blocks that are read and not booked.
      async getBalances(reads, options) {
        const answer = await node.getBalances(reads, options);
        if (!isOpened) await recordIncident(bench.ledger.database, { ...found, details: {} });
        isOpened = true;
        return answer;
      },
    };
    const running = bench.start();
    await halted(running, "NODES_DISAGREE");
    expect([isOpened, await bench.deposits()]).toEqual([true, []]);
    expect((await readCursor(bench.ledger.database)).height).toBe(-1);
    expect(await incidentsOf(bench)).toEqual(["NODES_DISAGREE open"]);
    await resumeCrediting(bench.ledger.database, "test");
    await bench.caughtUp();
    expect(await bench.deposits()).toEqual(["1-0-3 alice credited 5"]);
  });

  it("keep nobody from knowing the addresses that are given out meanwhile", async () => {
    const book = new AddressBook();
    const running = bench.start(undefined, undefined, undefined, { book });
    await bench.caughtUp();
    const found = { kind: "NODES_DISAGREE", height: 0, message: "found elsewhere" } as const;
    await recordIncident(bench.ledger.database, { ...found, details: {} });
    await halted(running, "NODES_DISAGREE");
    const { address } = await bench.register("alice");
    await until(() => book.customerOf(address) === "alice", {
      timeoutMs: 1_000,
      what: "the address is known",
    });
  });

  it("halt when a payment is only half told", async () => {
    const alice = await bench.register("alice");
    const paid = bench.chain.payment(STRANGER, alice.address, 10n);
    const again = bench.chain.payment(STRANGER, alice.address, 20n);
    const block = bench.chain.mine([paid, again]);
    bench.chain.dataApiBlocks.set(block.height, { ...block, transactions: [paid] });
    const running = bench.start();
    await halted(running, "BALANCE_MISMATCH");
    expect(running.watcher.status.incident?.details).toMatchObject({
      address: alice.address,
      operationsAtoken: "10",
      balanceAfterAtoken: "30",
    });
  });

  it("halt when coins come under the name of a token", async () => {
    const alice = await bench.register("alice");
    const hidden = bench.chain.mine([bench.chain.payment(STRANGER, alice.address, 10n)]);
    bench.chain.dataApiTokens.set(hidden.height, alice.address);
    const running = bench.start();
    await halted(running, "BALANCE_MISMATCH");
    expect(running.watcher.status.incident?.details).toMatchObject({
      address: alice.address,
      operationsAtoken: "0",
    });
  });

  it("halt when the head goes back, and when a booked block changes", async () => {
    const running = bench.start();
    bench.chain.mine();
    const block = bench.chain.mine();
    await bench.caughtUp();
    bench.chain.toldHead = 1;
    await halted(running, "HEIGHT_WENT_BACK");
    bench.chain.toldHead = undefined;
    const { hash } = block;
    block.hash = wrongHash;
    await resumeCrediting(bench.ledger.database, "test");
    await halted(running, "HASH_CHANGED");
    block.hash = hash;
    await resumeCrediting(bench.ledger.database, "test");
    bench.chain.mine();
    await bench.caughtUp();
    expect(await incidentsOf(bench)).toEqual([
      "HEIGHT_WENT_BACK resolved",
      "HASH_CHANGED resolved",
    ]);
  });

  it("are not what one late node behind a balancer is", async () => {
    const running = bench.start();
    bench.chain.mine();
    bench.chain.mine();
    await bench.caughtUp();
    bench.chain.toldHead = 1;
    await until(() => running.watcher.status.problem?.includes("below the booked block") === true, {
      timeoutMs: 5_000,
      what: "the late head is seen",
    });
    bench.chain.toldHead = undefined;
    bench.chain.mine();
    await bench.caughtUp();
    expect(await incidentsOf(bench)).toEqual([]);
  });

  it("halt signing as well, until an operator resumes", async () => {
    // What the worker and a person do here, the watcher's role may not.
    const { owner: database } = bench.ledger;
    await createHotWallet(database, { wallet: HOT, firstNonce: 0n });
    const block = bench.chain.mine();
    bench.chain.dataApiBlocks.set(1, { ...block, hash: wrongHash });
    expect((await readFreeze(database, HOT)).frozen).toBe(false);
    await halted(bench.start(), "NODES_DISAGREE");
    const freeze = await readFreeze(database, HOT);
    expect(freeze.frozen).toBe(true);
    expect(freeze.reason).toContain("NODES_DISAGREE");
    // The switch itself was never thrown: releasing it does not end the incident.
    expect(await releaseSigning(database, HOT)).toBe(false);
    expect((await readFreeze(database, HOT)).frozen).toBe(true);
    bench.chain.dataApiBlocks.clear();
    await resumeCrediting(database, "test");
    await bench.caughtUp();
    expect((await readFreeze(database, HOT)).frozen).toBe(false);
  });

  it("are not what an unreadable block is: what comes before it is booked, then it waits", async () => {
    const alice = await bench.register("alice");
    for (const amountAtoken of [5n, 6n]) bench.pay([alice.address, amountAtoken]);
    const paid = bench.chain.payment(STRANGER, alice.address, 7n);
    const block = bench.chain.mine([paid]);
    const changes = paid.changes.map((each) => ({ ...each, reason: "no name" as "CALL" }));
    bench.chain.dataApiBlocks.set(3, { ...block, transactions: [{ ...paid, changes }] });
    const { watcher } = bench.start();
    await until(() => watcher.status.problem?.includes("operation type") === true, {
      timeoutMs: 5_000,
      what: "the block is refused",
    });
    await until(async () => (await readCursor(bench.ledger.database)).height === 2, {
      timeoutMs: 5_000,
      what: "the blocks before it are booked",
    });
    expect(await bench.deposits()).toEqual(["1-0-3 alice credited 5", "2-0-3 alice detected 6"]);
    bench.chain.dataApiBlocks.clear();
    await bench.caughtUp();
    expect((await bench.deposits()).at(-1)).toBe("3-0-3 alice detected 7");
    expect(await incidentsOf(bench)).toEqual([]);
  });

  it("halt when node and Data API tell different blocks", async () => {
    const block = bench.chain.mine();
    bench.chain.dataApiBlocks.set(1, { ...block, hash: wrongHash });
    await halted(bench.start(), "NODES_DISAGREE");
  });

  it("halt when the past of an address does not add up", async () => {
    await bench.register("scout");
    const running = bench.start();
    bench.chain.mine();
    await bench.caughtUp();
    bench.chain.balanceLies.set(`${derivation.addressAt(1)}@1`, 5n);
    await bench.register("bob");
    await halted(running, "BALANCE_MISMATCH");
  });

  it("do not credit from a node of another chain", async () => {
    bench.chain.chainId = 6941n;
    const { watcher } = bench.start();
    await until(() => watcher.status.problem?.includes("another chain") === true, {
      timeoutMs: 5_000,
    });
    expect(readinessOf(watcher.status, 5, performance.now()).ready).toBe(false);
    expect(watcher.status.cursorHeight).toBe(-1);
  });
});
