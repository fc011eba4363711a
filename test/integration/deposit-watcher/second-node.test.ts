/** A watcher with a second node: what that one does not confirm is not booked, and what differs halts. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import { keccak256Hex } from "../../../chain/hashes.js";
import { readinessOf } from "../../../deposit-watcher/readiness.js";
import { TokenBook } from "../../../deposit-watcher/tokens/token-book.js";
import { readTokenStates } from "../../../ledger/assets/token-state.js";
import { registerAddresses } from "../../../ledger/deposits/deposit-addresses.js";
import { resumeCrediting } from "../../../ledger/incidents.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { listWallets } from "../../../ledger/wallets/wallet.js";
import { RpcError } from "../../../rpc-client/errors.js";
import { testAddress } from "../../helpers/chains/fake-chain.js";
import { registerTestWallets, silentLog } from "../../helpers/services/ledger.js";
import { until } from "../../helpers/until.js";
import { derivation, STRANGER, WatcherBench } from "../../helpers/services/watcher.js";
import { halted, incidentsOf } from "./told-incidents.js";

let bench: WatcherBench;
beforeEach(async () => {
  bench = await WatcherBench.open();
});
afterEach(() => bench.close());

/** Hot wallets that come later. */
const [WALLET, LATE_WALLET] = [testAddress(0x5ec), testAddress(0x5ed)];
const TOKEN = { symbol: "PLAIN", contractAddress: testAddress(0x70c3), decimals: 6 };
const wrongHash = keccak256Hex(Buffer.from("wrong"));

/** Wallets whose past is not booked. */
async function walletsToBook(): Promise<Address[]> {
  const wallets = await listWallets(bench.ledger.database);
  return wallets.filter(({ pastBooked }) => !pastBooked).map(({ address }) => address);
}

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
    expect(await incidentsOf(bench)).toEqual([]);
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
    expect([await incidentsOf(bench), running.faults]).toEqual([[], []]);
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
