import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import { keccak256Hex } from "../../../chain/hashes.js";
import { AddressBook } from "../../../deposit-watcher/address-book.js";
import { readinessOf } from "../../../deposit-watcher/readiness.js";
import { TokenBook } from "../../../deposit-watcher/tokens/token-book.js";
import { readTokenStates } from "../../../ledger/assets/token-state.js";
import { registerAddresses } from "../../../ledger/deposits/deposit-addresses.js";
import { resumeCrediting } from "../../../ledger/incidents.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { readFreeze, releaseSigning } from "../../../ledger/requests/signing-freeze.js";
import { listWallets } from "../../../ledger/wallets/wallet.js";
import { createHotWallet } from "../../../ledger/wallets/wallet-lease.js";
import { readCursor } from "../../../ledger/watch/watch-cursor.js";
import { RpcError } from "../../../rpc-client/errors.js";
import { testAddress } from "../../helpers/chains/fake-chain.js";
import { recordIncident, registerTestWallets, silentLog } from "../../helpers/services/ledger.js";
import { until } from "../../helpers/until.js";
import {
  derivation,
  HOT,
  type RunningWatcher,
  STRANGER,
  WatcherBench,
} from "../../helpers/services/watcher.js";

let bench: WatcherBench;
beforeEach(async () => {
  bench = await WatcherBench.open();
});
afterEach(() => bench.close());

/** Hot wallets that come later. */
const [WALLET, LATE_WALLET] = [testAddress(0x5ec), testAddress(0x5ed)];
const TOKEN = { symbol: "PLAIN", contractAddress: testAddress(0x70c3), decimals: 6 };
const wrongHash = keccak256Hex(Buffer.from("wrong"));

async function halted({ watcher }: RunningWatcher, kind: string): Promise<void> {
  await until(() => watcher.status.incident?.kind === kind, {
    timeoutMs: 5_000,
    what: `halted by ${kind}`,
  });
}

/** Wallets whose past is not booked. */
async function walletsToBook(): Promise<Address[]> {
  const wallets = await listWallets(bench.ledger.database);
  return wallets.filter(({ pastBooked }) => !pastBooked).map(({ address }) => address);
}

async function incidents(): Promise<string[]> {
  const rows = await bench.ledger.database.query<{ kind: string; resolved: boolean }>(
    `SELECT kind, resolved_at IS NOT NULL AS resolved FROM incident ORDER BY id`,
  );
  return rows.map(({ kind, resolved }) => `${kind} ${resolved ? "resolved" : "open"}`);
}

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
    await until(async () => (await incidents()).length === 2, { timeoutMs: 5_000 });
    expect(await incidents()).toEqual(["PARENT_MISMATCH resolved", "PARENT_MISMATCH open"]);
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
    expect(await incidents()).toEqual(["NODES_DISAGREE open"]);
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
    expect(await incidents()).toEqual(["HEIGHT_WENT_BACK resolved", "HASH_CHANGED resolved"]);
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
    expect(await incidents()).toEqual([]);
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
    expect(await incidents()).toEqual([]);
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

describe("a second node", () => {
  it("that is behind holds up what is booked, and nothing else", async () => {
    const alice = await bench.register("alice");
    let head = 0;
    bench.secondNode = { ...bench.node, blockNumber: () => Promise.resolve(head) };
    const { watcher } = bench.start();
    for (const amountAtoken of [5n, 6n, 7n]) bench.pay([alice.address, amountAtoken]);
    await until(() => watcher.status.headHeight === 3 && watcher.status.cursorHeight === 0, {
      timeoutMs: 5_000,
      what: "the head is seen, and nothing behind the second node's is booked",
    });
    head = 2;
    await until(() => watcher.status.cursorHeight === 2, { timeoutMs: 5_000 });
    expect(await bench.deposits()).toEqual(["1-0-3 alice credited 5", "2-0-3 alice detected 6"]);
    head = 3;
    await bench.caughtUp();
    expect(await incidents()).toEqual([]);
  });

  it("or a Data API that is behind is named by readiness and log, until it is not any more", async () => {
    let [head, indexed] = [5, 40];
    bench.secondNode = { ...bench.node, blockNumber: () => Promise.resolve(head) };
    const source = {
      ...bench.source,
      block: async (height: number, options: { readonly signal: AbortSignal }) =>
        height > indexed ? undefined : bench.source.block(height, options),
    };
    const said: unknown[] = [];
    const log = Object.assign(Object.create(silentLog) as typeof silentLog, {
      warn: (fields: object | string, text?: string) => void said.push([text, fields]),
    });
    for (let blocks = 0; blocks < 40; blocks++) bench.pay();
    const { watcher } = bench.start(undefined, undefined, 200, { source, log });
    const reasonIs = (reason: string | undefined) =>
      until(
        () => {
          const readiness = readinessOf(watcher.status, 20, performance.now());
          return (readiness.ready ? undefined : readiness.reason) === reason;
        },
        { timeoutMs: 10_000, what: `readiness says ${reason}` },
      );
    const [shown, lacking] = [
      "the second node shows height 5, 35 below the node",
      "the Data API has no block 16 yet",
    ];
    const toldOf = (reason: string) => {
      const told = ["no blocks can be booked here, other watchers may", { reason }];
      return until(() => said.some((one) => JSON.stringify(one) === JSON.stringify(told)), {
        timeoutMs: 10_000,
        what: `the log says ${reason}`,
      });
    };
    await reasonIs(`behind: 35 blocks below the head: ${shown}`);
    await toldOf(shown);
    [head, indexed] = [40, 15];
    await reasonIs(`behind: 25 blocks below the head: ${lacking}`);
    await toldOf(lacking);
    indexed = 40;
    await bench.caughtUp();
    await reasonIs(undefined);
    expect(watcher.status.waitsFor).toBe(undefined);
  });

  it("that has another block, or another balance, halts before anything is credited", async () => {
    const alice = await bench.register("alice");
    bench.pay([alice.address, 5n]);
    const truth = bench.node;
    const lies = { hash: true, balance: false };
    bench.secondNode = {
      ...bench.node,
      getBlockHeader: async (height, options) => {
        const header = await truth.getBlockHeader(height, options);
        return header && (lies.hash && height !== 0 ? { ...header, hash: wrongHash } : header);
      },
      getBalances: async (queries, options) => {
        const balances = await truth.getBalances(queries, options);
        return lies.balance ? balances.map(() => 0n) : balances;
      },
    };
    const running = bench.start();
    await halted(running, "NODES_DISAGREE");
    expect(running.watcher.status.incident?.message).toContain("the second node");
    Object.assign(lies, { hash: false, balance: true });
    await resumeCrediting(bench.ledger.database, "test");
    await halted(running, "BALANCE_MISMATCH");
    expect(await bench.deposits()).toEqual([]);
    lies.balance = false;
    await resumeCrediting(bench.ledger.database, "test");
    bench.chain.mine();
    await bench.caughtUp();
    expect(await bench.deposits()).toEqual(["1-0-3 alice credited 5"]);
  });

  it("that has another block halts within three looks, however the head moves on", async () => {
    const truth = bench.node;
    let rounds = 0;
    bench.secondNode = {
      ...truth,
      // Asked once for each round: the next one finds a longer run.
      blockNumber: (options) => {
        if (bench.chain.head > 0) {
          rounds += 1;
          bench.chain.mine();
        }
        return truth.blockNumber(options);
      },
      getBlockHeader: async (height, options) => {
        const header = await truth.getBlockHeader(height, options);
        return header && (height === 0 ? header : { ...header, hash: wrongHash });
      },
    };
    const running = bench.start();
    await bench.caughtUp();
    bench.chain.mine();
    await halted(running, "NODES_DISAGREE");
    expect(rounds).toBe(3);
  });

  it("that has another balance of an address's past halts before that is booked", async () => {
    const truth = bench.node;
    let lies = false;
    bench.secondNode = {
      ...bench.node,
      getBalances: async (queries, options) =>
        (await truth.getBalances(queries, options)).map((units) => (lies ? 0n : units)),
    };
    bench.pay([derivation.addressAt(0), 7n]);
    const running = bench.start();
    await bench.caughtUp();
    lies = true;
    await bench.register("alice");
    await halted(running, "BALANCE_MISMATCH");
    expect(running.watcher.status.incident?.message).toContain("the nodes disagree");
    expect(await bench.deposits()).toEqual([]);
  });

  it("that has another balance of what a wallet held halts before that is booked", async () => {
    const truth = bench.node;
    let lies = false;
    bench.secondNode = {
      ...bench.node,
      getBalances: async (queries, options) =>
        (await truth.getBalances(queries, options)).map((units) => (lies ? 0n : units)),
    };
    bench.pay([WALLET, 7n]);
    const running = bench.start();
    await bench.caughtUp();
    lies = true;
    await registerTestWallets(bench.ledger.database, WALLET);
    await halted(running, "BALANCE_MISMATCH");
    expect(running.watcher.status.incident?.message).toContain("the nodes disagree");
    expect(await walletsToBook()).toEqual([WALLET]);
  });

  it("that has another balance of a token to be opened halts before that is booked", async () => {
    const { chain, node, ledger } = bench;
    const { address } = await bench.register("alice");
    chain.token = TOKEN.contractAddress;
    chain.mine([chain.tokenPayment(STRANGER, { from: undefined, to: address, units: 7n })]);
    const coins = bench.start();
    await bench.caughtUp();
    await coins.stop();
    bench.secondNode = {
      ...node,
      tokenBalances: async (queries, options) =>
        (await node.tokenBalances(queries, options)).map(() => 0n),
    };
    const parts = { database: ledger.database, node, log: silentLog };
    const tokens = await TokenBook.open(parts, [TOKEN]);
    const running = bench.start(undefined, undefined, undefined, { tokens });
    await halted(running, "BALANCE_MISMATCH");
    expect(running.watcher.status.incident?.message).toContain(`has of ${TOKEN.contractAddress}`);
    const states = await readTokenStates(ledger.database);
    expect(states.get(TOKEN.symbol)?.isOpened).toBe(false);
  });

  it("without old states holds up the pasts that it would have to show, and no other", async () => {
    const { ledger, node } = bench;
    // More than are looked at in one round.
    const early = 201;
    const issue = {
      deriveAddress: (index: number) => derivation.addressAt(index),
      issuedBelow: 0,
    };
    let isPruned = true;
    const pruned = new RpcError("pruned", { rpcCode: 4444, method: "eth_getBalance" });
    bench.secondNode = {
      ...node,
      getBalances: (queries, options) =>
        isPruned && queries.some(({ at }) => at === 1)
          ? Promise.reject(pruned)
          : node.getBalances(queries, options),
    };
    const [first, late] = [derivation.addressAt(0), derivation.addressAt(early)];
    bench.pay([first, 5n], [late, 6n], [WALLET, 7n], [LATE_WALLET, 8n]);
    const running = bench.start();
    await bench.caughtUp();
    await registerAddresses(
      ledger.database,
      Array.from({ length: early }, () => parseCustomerId("alice")),
      issue,
    );
    await registerTestWallets(ledger.database, WALLET);
    bench.chain.mine();
    await bench.caughtUp();
    await bench.register("bob");
    await registerTestWallets(ledger.database, LATE_WALLET);
    await until(async () => (await bench.deposits()).length > 0, { timeoutMs: 5_000 });
    expect(await bench.deposits()).toEqual(["1-1-3 bob suspense 6"]);
    await until(async () => (await walletsToBook()).length === 1, { timeoutMs: 5_000 });
    expect(await walletsToBook()).toEqual([WALLET]);
    const problem = "the second node has deleted what";
    await until(() => running.watcher.status.pastProblem?.startsWith(problem) === true, {
      timeoutMs: 5_000,
      what: "the watcher says what it waits for",
    });
    isPruned = false;
    await bench.backfilled();
    expect((await bench.deposits()).toSorted()).toEqual([
      "1-0-3 alice suspense 5",
      "1-1-3 bob suspense 6",
    ]);
    await until(async () => (await walletsToBook()).length === 0, { timeoutMs: 5_000 });
    expect([await incidents(), running.faults]).toEqual([[], []]);
  });

  it("of another chain books nothing", async () => {
    bench.secondNode = { ...bench.node, chainId: () => Promise.resolve(6941n) };
    const { watcher } = bench.start();
    await until(() => watcher.status.problem?.includes("the second node serves another") === true, {
      timeoutMs: 5_000,
    });
    expect(watcher.status.cursorHeight).toBe(-1);
  });
});
