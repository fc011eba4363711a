/**
 * mesh-check against a real kit whose chain has every kind of native balance change: clean as it
 * is, and every planted fault found and named by block and account, those included that
 * rosetta-cli passes over.
 */
import fs from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { getAddress, Wallet } from "ethers";
import type { MeshFault, MeshFaultCode } from "../../cli/mesh-check/faults.js";
import { createGate } from "../helpers/gate.js";
import { kitOffset, type RunningKit, startKit } from "../helpers/kit.js";
import { type FaultProxy, type PlantedFault, startFaultProxy } from "../mesh/fault-proxy.js";
import { changeStoredJournal } from "../mesh/journal-edit.js";
import { type MeshCheckRun, runMeshCheck } from "../mesh/run-mesh-check.js";
import { openStage, playActs, type Stage, type TrafficReport } from "../mesh/traffic.js";
import { deployNative, nativeRound } from "../mesh/traffic-native.js";

const SEED = Number(process.env["MESH_SEED"] ?? Math.floor(Math.random() * 2 ** 31));

/** What the planted payment moves. */
const PAID_ATOKEN = 123_456_789n;

/** Blocks walked before and behind the planted payment, unless the walk is from genesis. */
const BLOCKS_BEFORE = 4;
const BLOCKS_AFTER = 5;

interface Payment {
  readonly from: string;
  readonly to: string;
  readonly block: number;
  readonly hash: string;
}

describe("mesh-check", () => {
  let kit: RunningKit;
  let proxy: FaultProxy;
  let payment: Payment;

  /** The blocks around the payment, unless `--from` comes later among the words. */
  const range = () => [
    `--from=${payment.block - BLOCKS_BEFORE}`,
    `--to=${payment.block + BLOCKS_AFTER}`,
  ];
  const check = (url: string, ...more: string[]): Promise<MeshCheckRun> =>
    runMeshCheck(["--url", url, "--json", ...range(), "--seed", String(SEED), ...more]);

  beforeAll(async () => {
    kit = await startKit({ portOffset: kitOffset(2) });
    const stage = await openStage(kit, SEED);
    const report: TrafficReport = { kinds: new Map(), transactions: 0 };
    await playActs(stage, nativeRound(stage, await deployNative(stage)), report);
    payment = await pay(stage);
    await stage.chain.blocksPass(BLOCKS_AFTER + 1);
    stage.chain.provider.destroy();
    proxy = await startFaultProxy(kit.url("sidecarOnline"));
  });
  afterAll(async () => {
    await proxy?.close();
    await kit?.stop();
    kit?.remove();
  });

  /** A payment to an account that nothing else names. */
  async function pay({ chain, faucet, senders }: Stage): Promise<Payment> {
    const [sender] = senders;
    if (sender === undefined) throw new Error(`no sender beside ${faucet.wallet.address}`);
    const to = Wallet.createRandom().address;
    const [receipt] = await chain.mined(await sender.send([{ to, valueAtoken: PAID_ATOKEN }]));
    if (receipt === undefined) throw new Error("not mined");
    const { blockNumber, hash } = receipt;
    return { from: getAddress(sender.wallet.address), to, block: blockNumber, hash };
  }

  it("finds nothing on a chain with every kind of change, by its own and the node's word", async () => {
    const { code, document } = await check(proxy.url, "--from=0", `--node=${kit.url("jsonRpc")}`);
    expect({ seed: SEED, faults: document.faults }).toEqual({ seed: SEED, faults: [] });
    expect(code).toBe(0);
    expect(document.supplyBlockCount).toBe(document.to + 1);
    expect(document.transactionCount).toBeGreaterThan(40);
    // At least each operation's account once by index and once by hash.
    expect(document.answerCount).toBeGreaterThan(document.operationCount / 2);
    for (const kind of [
      "CREATE2 SUCCESS",
      "CALL FAILURE",
      "SELFDESTRUCT FAILURE",
      "DESTRUCT SUCCESS",
    ]) {
      expect({ kind, count: document.operationKinds[kind] ?? 0 }).not.toEqual({ kind, count: 0 });
    }
  });

  it("tells the hash that validators signed beside each block's own, as the consensus RPC has it", async () => {
    const network = { blockchain: "token", network: "testnet" };
    const toldOf = async (index: number): Promise<string | undefined> => {
      const body = { network_identifier: network, block_identifier: { index } };
      const headers = { "content-type": "application/json" };
      const request = { method: "POST", headers, body: JSON.stringify(body) };
      const response = await fetch(`${kit.url("sidecarOnline")}/block`, request);
      type Answer = { block: { metadata: { consensus_block_hash?: string } } };
      return ((await response.json()) as Answer).block.metadata.consensus_block_hash;
    };
    const signedOf = async (height: number): Promise<string> => {
      const response = await fetch(`${kit.url("cometRpc")}/block?height=${height}`);
      const { result } = (await response.json()) as { result: { block_id: { hash: string } } };
      return `0x${result.block_id.hash.toLowerCase()}`;
    };
    expect(await toldOf(0)).toBeUndefined();
    for (const height of [1, payment.block, payment.block + BLOCKS_AFTER]) {
      expect(await toldOf(height)).toBe(await signedOf(height));
    }
  });

  it("prints a table that says what was looked at", async () => {
    const { code, printed } = await runMeshCheck(["--url", proxy.url, ...range()]);
    expect(code).toBe(0);
    expect(printed.join("\n")).toMatch(/blocks +10 \([0-9]+ to [0-9]+\)/);
    expect(printed.at(-1)).toBe("Every balance is explained by its operations; no fault.");
  });

  it("starts later than genesis with the balances of the block before", async () => {
    const { code, document } = await check(proxy.url);
    expect(document.faults).toEqual([]);
    expect(code).toBe(0);
    expect(document.from).toBe(payment.block - BLOCKS_BEFORE);
  });

  /** The planted payment's transaction in a block, if the block has it. */
  const planted = (block: Parameters<NonNullable<PlantedFault["block"]>>[0]) =>
    block.transactions.find((entry) => entry.transaction_identifier.hash === payment.hash);

  const transactionFault = (
    change: (transaction: NonNullable<ReturnType<typeof planted>>) => void,
  ): PlantedFault => ({
    block(block) {
      const transaction = planted(block);
      if (transaction !== undefined) change(transaction);
    },
  });

  const blockFault = (
    change: (block: Parameters<NonNullable<PlantedFault["block"]>>[0]) => void,
    offset = 0,
  ): PlantedFault => ({
    block(block) {
      if (block.block_identifier.index === payment.block + offset) change(block);
    },
  });

  const last = <T>(items: T[]): T => {
    const item = items.at(-1);
    if (item === undefined) throw new Error("an empty list");
    return item;
  };

  /** The fee pair, then the payer, then the one who is paid. */
  const credit = (transaction: NonNullable<ReturnType<typeof planted>>) =>
    last(transaction.operations);

  /** Blocks are asked for at once and answered in any order: the later one waits for what is moved. */
  const aBlockLate = (): PlantedFault => {
    const taken = createGate();
    let moved: NonNullable<ReturnType<typeof planted>>["operations"] = [];
    return {
      async block(block) {
        const transaction = planted(block);
        if (transaction !== undefined) {
          moved = transaction.operations.splice(-2);
          taken.open();
        }
        if (block.block_identifier.index !== payment.block + 1) return;
        await taken.opened;
        const { operations } = last(block.transactions);
        const base = operations.length;
        moved.forEach((operation, position) => {
          const related = position === 0 ? {} : { related_operations: [{ index: base }] };
          const moving = { ...operation, operation_identifier: { index: base + position } };
          operations.push({ ...moving, related_operations: [], ...related });
        });
      },
    };
  };

  const faults: readonly (readonly [
    name: string,
    fault: () => PlantedFault,
    expected: () => { code: MeshFaultCode; offset?: number; account?: string },
  ])[] = [
    [
      "an amount that is one off",
      () =>
        transactionFault((transaction) => {
          credit(transaction).amount.value = (PAID_ATOKEN + 1n).toString();
        }),
      () => ({ code: "BALANCE_AT_BLOCK", account: payment.to }),
    ],
    [
      "an operation that is missing",
      () => transactionFault((transaction) => transaction.operations.pop()),
      () => ({ code: "SUPPLY" }),
    ],
    [
      "a whole payment that is missing",
      () => transactionFault((transaction) => transaction.operations.splice(-2)),
      () => ({ code: "BALANCE_AT_BLOCK", account: payment.from }),
    ],
    [
      "a payment that is reported a block late",
      aBlockLate,
      () => ({ code: "BALANCE_WITHOUT_OPERATION", account: payment.to }),
    ],
    [
      "a failed operation that is told as successful",
      () => ({
        block(block) {
          const operations = block.transactions.flatMap((entry) => entry.operations);
          const failed = operations.filter(
            ({ status, amount }) => status === "FAILURE" && !/^0$/.test(amount.value),
          );
          for (const operation of failed) operation.status = "SUCCESS";
        },
      }),
      () => ({ code: "BALANCE_AT_BLOCK", offset: Number.NaN }),
    ],
    [
      "a block hash in upper case",
      () =>
        blockFault((block) => {
          const { hash } = block.block_identifier;
          block.block_identifier.hash = `0x${hash.slice(2).toUpperCase()}`;
        }),
      () => ({ code: "HASH_CASE" }),
    ],
    [
      "a transaction hash in upper case",
      () =>
        transactionFault(({ transaction_identifier: id }) => {
          id.hash = `0x${id.hash.slice(2).toUpperCase()}`;
        }),
      () => ({ code: "HASH_CASE" }),
    ],
    [
      "a parent hash of another block",
      () =>
        blockFault((block) => {
          block.parent_block_identifier.hash = `0x${"12".repeat(32)}`;
        }),
      () => ({ code: "PARENT_BLOCK" }),
    ],
    [
      "a block that names itself as parent",
      () =>
        blockFault((block) => {
          block.parent_block_identifier = { ...block.block_identifier };
        }),
      () => ({ code: "PARENT_BLOCK" }),
    ],
    [
      "a transaction that appears twice",
      () => blockFault((block) => block.transactions.push(last(block.transactions))),
      () => ({ code: "DUPLICATE_TRANSACTION" }),
    ],
    [
      "a gap in the operation indexes",
      () =>
        transactionFault((transaction) => {
          credit(transaction).operation_identifier.index += 1;
        }),
      () => ({ code: "OPERATION_INDEX" }),
    ],
    [
      "an operation that is related to itself",
      () =>
        transactionFault((transaction) => {
          const { operation_identifier: id } = credit(transaction);
          credit(transaction).related_operations = [{ index: id.index }];
        }),
      () => ({ code: "RELATED_OPERATION" }),
    ],
    [
      "a type that no options list",
      () =>
        transactionFault((transaction) => {
          credit(transaction).type = "GIFT";
        }),
      () => ({ code: "OPERATION_TYPE" }),
    ],
    [
      "a status that no options list",
      () =>
        transactionFault((transaction) => {
          credit(transaction).status = "DONE";
        }),
      () => ({ code: "OPERATION_STATUS" }),
    ],
    [
      "a timestamp before its parent's",
      () =>
        blockFault((block) => {
          block.timestamp -= 3_600_000;
        }),
      () => ({ code: "TIMESTAMP" }),
    ],
    [
      "metadata that mints more than the operations",
      () =>
        blockFault((block) => {
          block.metadata["minted"] = `${BigInt(block.metadata["minted"] ?? "0") + 1n}`;
        }),
      () => ({ code: "SUPPLY" }),
    ],
    [
      "a balance by hash that is the latest one",
      () => ({
        async balance(request, reply, ask) {
          if (request.block_identifier?.hash === undefined) return;
          reply.balances = (await ask({})).balances;
        },
      }),
      () => ({ code: "BALANCE_BY_HASH", offset: Number.NaN }),
    ],
    [
      "a balance that is of another block",
      () => ({
        balance(request, reply) {
          if (request.account_identifier.address === payment.to) reply.block_identifier.index += 1;
        },
      }),
      () => ({ code: "BALANCE_AT_BLOCK", account: payment.to }),
    ],
    [
      "a currency that goes unanswered",
      () => ({
        balance(request, reply) {
          if (request.account_identifier.address === payment.to) reply.balances = [];
        },
      }),
      () => ({ code: "BALANCE_MALFORMED", account: payment.to }),
    ],
    [
      "a balance that changes although nobody says so, seen only at the tip",
      () => ({
        balance(request, reply) {
          if (request.account_identifier.address !== payment.to) return;
          const [balance] = reply.balances;
          const isLate = reply.block_identifier.index >= payment.block + 2;
          if (balance !== undefined && isLate) balance.value = "7";
        },
      }),
      () => ({ code: "BALANCE_WITHOUT_OPERATION", account: payment.to, offset: 2 }),
    ],
  ];

  it.each(faults)("finds %s", async (_name, fault, expected) => {
    proxy.plant(fault());
    const { code: wanted, offset = 0, account } = expected();
    // Faults that lie anywhere need the whole chain, the others the blocks around the payment.
    const whole = Number.isNaN(offset) ? ["--from", "0"] : [];
    const { code, document } = await check(proxy.url, ...whole).finally(() =>
      proxy.plant(undefined),
    );
    expect(code).toBe(1);
    const found = document.faults.filter(
      (one: MeshFault) =>
        one.code === wanted &&
        (Number.isNaN(offset) || one.blockIndex === payment.block + offset) &&
        (account === undefined || one.account === account),
    );
    expect({ seed: SEED, found: found.length > 0, all: document.faults }).toMatchObject({
      found: true,
    });
  });

  it("finds by the node's word what the server hides consistently", async () => {
    const hidden = PAID_ATOKEN.toString();
    proxy.plant({
      // Operations and balances agree with each other: the payment never happened.
      ...transactionFault((transaction) => {
        for (const { amount } of transaction.operations.slice(-2)) amount.value = "0";
      }),
      balance(request, reply) {
        if (reply.block_identifier.index < payment.block) return;
        const [balance] = reply.balances;
        if (balance === undefined) return;
        const { address } = request.account_identifier;
        const change = address === payment.to ? `-${hidden}` : hidden;
        if (address !== payment.to && address !== payment.from) return;
        balance.value = (BigInt(balance.value) + BigInt(change)).toString();
      },
    });
    try {
      expect((await check(proxy.url)).code).toBe(0);
      const { code, document } = await check(proxy.url, "--node", kit.url("jsonRpc"));
      expect(code).toBe(1);
      expect(document.faults).toContainEqual(
        expect.objectContaining({
          code: "BALANCE_OF_NODE",
          blockIndex: payment.block,
          account: payment.to,
        }),
      );
    } finally {
      proxy.plant(undefined);
    }
  });

  it("ends with 2 where there is nothing to ask", async () => {
    for (const words of [
      ["--url", "http://127.0.0.1:1"],
      ["--url", "nonsense"],
      ["--url", proxy.url, "--to", "999999999"],
      ["--url", proxy.url, "--from", "-1"],
    ]) {
      const { code, progress } = await runMeshCheck(words);
      expect({ words, code }).toEqual({ words, code: 2 });
      expect(progress.at(-1)).toMatch(/^mesh-check: /);
    }
  });

  it("ends with 2 when it is stopped", async () => {
    const signal = AbortSignal.abort(new DOMException("stopped", "AbortError"));
    expect((await runMeshCheck(["--url", proxy.url], signal)).code).toBe(2);
  });

  it("finds a fault planted in the node's journal and names block and account", async () => {
    expect(await kit.stop()).toBe(0);
    const store = join(kit.home, "data", "chain");
    await changeStoredJournal(store, payment.block, (change) =>
      change.to === payment.to.toLowerCase()
        ? { ...change, amountAtoken: change.amountAtoken + 1n }
        : change,
    );
    // What the sidecar derived from the journal would still be right.
    fs.rmSync(join(kit.home, "data", "sidecar"), { recursive: true, force: true });
    kit = await startKit({ home: kit.home, portOffset: kitOffset(2) });
    const { code, document } = await check(kit.url("sidecarOnline"));
    expect(code).toBe(1);
    const named = document.faults.map((one) => [one.code, one.blockIndex, one.account]);
    expect(named).toContainEqual(["BALANCE_AT_BLOCK", payment.block, payment.to]);
    expect(named).toContainEqual(["BALANCE_AT_BLOCK", payment.block, payment.from]);
    expect(named).toHaveLength(2);
  });
});
