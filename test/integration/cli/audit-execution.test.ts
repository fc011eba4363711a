/**
 * The auditor's second opinion over a real chain and its JSON-RPC: blocks with every kind of
 * balance change agree, and whatever is changed in what the node says is found and named.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ContractFactory, decodeRlp, encodeRlp, Interface, Wallet } from "ethers";
import { parseAddress } from "../../../chain/address.js";
import { bytesToHex, type Height, parseHash32 } from "../../../chain/hex.js";
import { createAuditNode, type AuditNode } from "../../../cli/audit/audit-node.js";
import { auditExecution, type AuditReport } from "../../../cli/audit/execution-audit.js";
import { runAuditExecution } from "../../../cli/commands/audit.js";
import { encodeGenesis, type Genesis } from "../../../node/settings/genesis.js";
import { createJsonRpcClient, type JsonRpcClient } from "../../../rpc-client/json-rpc.js";
import { testGenesis } from "../../helpers/chains/execution-chain.js";
import { published } from "../../helpers/chains/native-chain.js";
import { ServedChain } from "../../helpers/chains/served-chain.js";
import { stakedGenesis } from "../../helpers/cosmos/module-state.js";
import { createRandom } from "../../helpers/random.js";
import { compileFixture } from "../../helpers/contracts/solidity.js";

const SEED = 20_261_126;
const wallet = new Wallet(`0x${"11".repeat(32)}`);
const second = new Wallet(`0x${"12".repeat(32)}`);
const compiled = compileFixture("Payments.sol").Payer;
if (compiled === undefined) throw new Error("fixture did not compile");
const payer = new Interface(JSON.stringify(compiled.abi));
const PRICE = 25_000_000n;
const TEN = 10n ** 19n;
/** Slots that a transaction writes or erases. */
const SLOTS = 60;
const { signal } = new AbortController();
const numbered = (n: number) => parseHash32(`0x${n.toString(16).padStart(64, "0")}`);
const fresh = (n: number) => `0x${n.toString(16).padStart(40, "9")}`;

let served: ServedChain;
let genesis: Genesis;
let rpc: JsonRpcClient;
let node: AuditNode;
let contract = "";
let nonce = 0;

beforeAll(async () => {
  genesis = testGenesis(wallet.address);
  served = await ServedChain.open(genesis);
  rpc = createJsonRpcClient({ url: served.url, timeoutMs: 240_000 });
  node = createAuditNode(rpc, signal);
  await mineAll();
});
afterAll(async () => {
  rpc.close();
  await served.close();
});

interface Fields {
  readonly to?: string;
  readonly value?: bigint;
  readonly data?: string;
  readonly gas?: bigint;
  readonly type?: 0 | 1 | 2;
}

function sign({ to, value = 0n, data = "0x", gas = 1_000_000n, type = 0 }: Fields) {
  const price =
    type === 2
      ? { maxFeePerGas: 3n * PRICE, maxPriorityFeePerGas: 2n * PRICE }
      : { gasPrice: PRICE };
  const accessList = type === 0 ? {} : { accessList: [{ address: fresh(1), storageKeys: [] }] };
  const fields = {
    type,
    chainId: 6940,
    nonce: nonce++,
    gasLimit: gas,
    to: to ?? null,
    value,
    data,
  };
  return wallet.signTransaction({ ...fields, ...price, ...accessList });
}

const call = (name: string, args: unknown[], value = 0n, gas?: bigint) =>
  sign({ to: contract, data: payer.encodeFunctionData(name, args), value, ...(gas && { gas }) });

/** 1: transfers of all types; 2: a creation; 3: internal transfers; 4: empty; 5: a crowd; 6: the end. */
async function mineAll(): Promise<void> {
  await served.mine([
    await sign({ to: fresh(1), value: TEN, gas: 21_000n }),
    await sign({ to: wallet.address, value: 5n, gas: 21_000n }),
    await sign({ to: fresh(2), value: 7n, type: 1, data: "0x00112200ff", gas: 60_000n }),
    await sign({ to: fresh(3), value: 8n, type: 2, gas: 60_000n }),
    await sign({ to: `0x${"00".repeat(19)}0a`, value: 3n, data: "0x1234" }),
    await sign({ to: `0x${"00".repeat(19)}09`, data: "0x1234" }),
    await sign({ to: second.address, value: TEN, gas: 21_000n }),
  ]);
  const { data } = await new ContractFactory(payer, compiled?.bytecode ?? "").getDeployTransaction(
    fresh(4),
  );
  const created = await served.mine([await sign({ data, value: TEN, gas: 3_000_000n })]);
  contract = created.committed.receipts[0]?.contractAddress ?? "";
  await served.mine([
    await call("forward", [[fresh(4), fresh(5), fresh(4)], 10n, 3], 100n),
    await call("payThenRevertInside", [fresh(6), 50n], 60n),
    await call("fail", [fresh(6)], 60n),
    await call("delegate", [contract, fresh(7), 11n], 20n),
    await call("create", [`0x${"77".repeat(32)}`, fresh(8)], 1_000n),
    await call("createToSelf", [], 333n),
    await call("createPlain", [], 444n),
    await call("callcode", [fresh(9), 12n], 12n),
    await call("burnGas", [], 0n, 100_000n),
    await call("write", [5]),
    await call("erase", [1, 3]),
    await call("see", []),
  ]);
  await served.mine([]);
  const random = createRandom(SEED);
  const crowd = Array.from({ length: 40 }, () => bytesToHex(random.bytes(20)));
  await served.mine(
    await Promise.all(crowd.map((to) => sign({ to, value: 1n + PRICE, gas: 21_000n }))),
  );
  await served.mine([
    await call("write", [20]),
    await call("erase", [0, 20]),
    await call("destroyTo", [fresh(10)], 5n),
    await sign({ to: contract, value: 9n }),
    // Everything goes: the account ceases to be, and its neighbours in the trie move up.
    await second.signTransaction({
      type: 0,
      chainId: 6940,
      nonce: 0,
      gasLimit: 21_000n,
      gasPrice: PRICE,
      to: fresh(11),
      value: TEN - 21_000n * PRICE,
    }),
  ]);
}

function audit(
  changes: Partial<AuditNode> = {},
  range: { from?: Height; to?: Height } = {},
  rules: Genesis = genesis,
): Promise<AuditReport> {
  const { from = 1, to = served.chain.view.head().height } = range;
  return auditExecution({
    node: { ...node, ...changes },
    genesis: rules,
    from,
    to,
    trustedHash: undefined,
    onProgress: () => undefined,
    signal,
  });
}

describe("an audit of a chain with modules", () => {
  it("takes their storage as the block's root proves it, and everything else as executed", async () => {
    const stakes = stakedGenesis([40, 60], { "distribution.community_tax": "0.1" });
    const faucet = { balanceAtoken: 10n ** 24n, code: undefined, storage: new Map() };
    const alloc = new Map(stakes.alloc).set(parseAddress(second.address), faucet);
    const rules = { ...stakes, alloc };
    const staked = await ServedChain.open(rules);
    const client = createJsonRpcClient({ url: staked.url, timeoutMs: 240_000 });
    try {
      for (let n = 0; n < 4; n++) {
        const fields = { type: 0, chainId: 6940, gasLimit: 21_000n, gasPrice: PRICE };
        const to = fresh(20 + n);
        const raw = await second.signTransaction({ ...fields, nonce: n, to, value: 5n });
        await staked.mine(n < 2 ? [raw] : []);
      }
      const own = createAuditNode(client, signal);
      const common = { node: own, genesis: rules, trustedHash: undefined, signal };
      const options = { ...common, onProgress: () => undefined, to: 4 };
      const exact = { difference: undefined, to: 4, transactions: 2, isSupplyExact: true };
      expect(await auditExecution({ ...options, from: 1 })).toMatchObject(exact);
      const later = { difference: undefined, to: 4, isSupplyExact: false };
      expect(await auditExecution({ ...options, from: 3 })).toMatchObject(later);
      // The library has no such contract: what it makes of the call says nothing of the chain.
      const { abi, address } = published("IBech32");
      const data = abi.encodeFunctionData("hexToBech32", [fresh(1), "addr"]);
      const fields = { type: 0, chainId: 6940, gasLimit: 100_000n, gasPrice: PRICE };
      const raw = await second.signTransaction({ ...fields, nonce: 2, to: address, data });
      const called = await staked.mine([raw]);
      expect(called.committed.receipts[0]?.status).toBe(1);
      await staked.mine([]);
      const hash = called.committed.block.transactions[0]?.tx.hash;
      await expect(auditExecution({ ...options, from: 4, to: 6 })).rejects.toMatchObject({
        code: "NOT_JUDGED",
        details: { height: 5, transaction: hash },
      });
      const behind = { difference: undefined, to: 6 };
      expect(await auditExecution({ ...options, from: 6, to: 6 })).toMatchObject(behind);
    } finally {
      client.close();
      await staked.close();
    }
  });
});

describe("an audit of execution", () => {
  it("agrees with every block, from genesis on and from any other", async () => {
    const { hash, height } = served.chain.view.head();
    const report = await audit();
    expect(report).toMatchObject({
      difference: undefined,
      from: 1,
      to: height,
      lastHash: hash,
      blocks: height,
      transactions: 65,
      isSupplyExact: true,
    });
    for (let from = 2; from <= height; from++) {
      expect(await audit({}, { from })).toMatchObject({
        difference: undefined,
        lastHash: hash,
        isSupplyExact: false,
      });
    }
  });

  it("asks in a few requests for all that a block reads, and believes nothing of what it reads", async () => {
    const written = await ServedChain.open(genesis);
    const client = createJsonRpcClient({ url: written.url, timeoutMs: 240_000 });
    try {
      const fields = { type: 0, chainId: 6940, gasLimit: 3_000_000n, gasPrice: PRICE };
      const mine = async (n: number, rest: { to?: string | null; data: string }) =>
        written.mine([await wallet.signTransaction({ ...fields, nonce: n, ...rest })]);
      const factory = new ContractFactory(payer, compiled.bytecode);
      const { data } = await factory.getDeployTransaction(fresh(4));
      const to = (await mine(0, { data })).committed.receipts[0]?.contractAddress ?? "";
      await mine(1, { to, data: payer.encodeFunctionData("write", [SLOTS]) });
      await mine(2, { to, data: payer.encodeFunctionData("erase", [0, SLOTS]) });
      const own = createAuditNode(client, signal);
      const counted = async (touched: AuditNode["touched"]) => {
        let requests = 0;
        const proofs: AuditNode["proofs"] = (queries, height) => {
          requests += 1;
          return own.proofs(queries, height);
        };
        const options = { genesis, trustedHash: undefined, onProgress: () => undefined, signal };
        const range = { from: 3, to: 3 };
        const asked = { ...own, touched, proofs };
        const report = await auditExecution({ ...options, ...range, node: asked });
        expect(report).toMatchObject({ difference: undefined, transactions: 1 });
        return requests;
      };
      expect(await counted((height) => own.touched(height))).toBeLessThan(6);
      // No transaction names a slot: each is a request of its own, unless somebody tells.
      expect(await counted(() => Promise.resolve([]))).toBeGreaterThan(SLOTS / 2);
      const lie = (n: number) => ({ address: parseAddress(fresh(n)), slots: [numbered(n)] });
      const lies = Array.from({ length: 300 }, (_, n) => lie(n));
      expect(await counted(() => Promise.resolve(lies))).toBeGreaterThan(SLOTS / 2);
    } finally {
      client.close();
      await written.close();
    }
  });

  it("needs the state of nobody but the headers: a proof of another state is refused", async () => {
    const other: Partial<AuditNode> = {
      proofs: (queries, height) => node.proofs(queries, height === 2 ? 1 : height),
    };
    await expect(audit(other, { from: 3 })).rejects.toMatchObject({ code: "STATE_UNPROVEN" });
    const noCode: Partial<AuditNode> = { code: () => Promise.resolve(Uint8Array.of(0)) };
    await expect(audit(noCode, { from: 3 })).rejects.toMatchObject({ code: "STATE_UNPROVEN" });
  });

  it("names block, transaction and field of a receipt that is not what was executed", async () => {
    const forged = (index: number, change: object): Partial<AuditNode> => ({
      receipts: async (height) =>
        (await node.receipts(height)).map((receipt, position) =>
          height === 3 && position === index ? { ...receipt, ...change } : receipt,
        ),
    });
    const [one] = await node.receipts(3);
    const cases: readonly (readonly [string, object])[] = [
      ["gasUsed", { gasUsed: (one?.gasUsed ?? 0n) + 1n }],
      ["status", { status: 0 }],
      ["cumulativeGasUsed", { cumulativeGasUsed: 1n }],
      ["effectiveGasPrice", { effectiveGasPriceAtoken: 1n }],
      ["contractAddress", { contractAddress: parseAddress(fresh(1)) }],
      ["logs", { logs: [{ address: parseAddress(fresh(1)), topics: [], data: "0x" }] }],
      ["logsBloom", { logsBloom: `0x${"01".repeat(256)}` }],
    ];
    for (const [field, change] of cases) {
      const { difference, to } = await audit(forged(0, change), { from: 3 });
      expect(difference).toMatchObject({ height: 3, transaction: { index: 0 }, field });
      expect(difference?.chain).not.toBe(difference?.audit);
      expect(to).toBe(3);
    }
  });

  it("names the account whose journalled change is not the executed one", async () => {
    const journal: AuditNode["journal"] = async (hash) => {
      const block = await node.journal(hash);
      return {
        ...block,
        transactions: block.transactions.map((each, index) =>
          block.height === 3 && index === 0
            ? { ...each, changes: each.changes.slice(0, -1) }
            : each,
        ),
      };
    };
    const { difference } = await audit({ journal }, { from: 3 });
    expect(difference).toMatchObject({ height: 3, transaction: { index: 0 } });
    expect(difference?.field).toMatch(/^change of the balance of 0x/);
  });

  it("finds another mint, another treasury and a header that is bound to other things", async () => {
    const more: Partial<AuditNode> = {
      journal: async (hash) => {
        const block = await node.journal(hash);
        const blockChanges = block.blockChanges.map((change) =>
          change.reason === "MINT" ? { ...change, amountAtoken: change.amountAtoken + 9n } : change,
        );
        return { ...block, blockChanges };
      },
    };
    expect((await audit(more)).difference).toMatchObject({ height: 1, transaction: undefined });
    const treasury = parseAddress(fresh(77));
    const other = { ...genesis, params: { ...genesis.params, treasury } };
    expect((await audit({}, { from: 2 }, other)).difference?.field).toContain("balance");
    const swapped = (index: number, value: string): Partial<AuditNode> => ({
      rawBlock: async (height) => {
        const bytes = await node.rawBlock(height);
        const [header, ...rest] = decodeRlp(bytes) as [string[], ...string[]];
        const changed = header.map((item, position) => (position === index ? value : item));
        return height === 5 ? Buffer.from(encodeRlp([changed, ...rest]).slice(2), "hex") : bytes;
      },
      // The journal is asked for by hash, and the forged hash is nobody's.
      journal: (hash) => node.journal(hash).catch(() => journalOf(5)),
    });
    const root = `0x${"5a".repeat(32)}`;
    for (const [index, field] of [
      [0, "parentHash"],
      [3, "stateRoot"],
      [4, "transactionsRoot"],
      [5, "receiptsRoot"],
      [12, "extraData"],
    ] as const) {
      const { difference } = await audit(swapped(index, root));
      expect(difference).toMatchObject({ height: 5, transaction: undefined, field, chain: root });
    }
  });

  it("finds coins that a Cosmos transaction made of nothing, in a header that has them", async () => {
    // What such transactions moved is taken from the journal: the header of a forger fits it.
    const forgedAt = 4;
    const made: Partial<AuditNode> = {
      journal: async (hash) => {
        const block = await node.journal(hash).catch(() => journalOf(forgedAt));
        if (block.height !== forgedAt) return block;
        const coins = { reason: "CALL", from: undefined, to: parseAddress(fresh(66)) } as const;
        const change = { ...coins, amountAtoken: TEN, effective: true, tracePath: undefined };
        const [like] = (await journalOf(1)).transactions;
        if (like === undefined) throw new Error("block 1 is empty");
        const said = { gasLimit: 1n, feeAtoken: 0n, memo: "", messages: [], dataIndex: 0 };
        return { ...block, transactions: [{ ...like, changes: [change], cosmos: said }] };
      },
    };
    const range = { to: forgedAt };
    const { difference: rootOf } = await audit(made, range);
    const rawBlock: AuditNode["rawBlock"] = async (height) => {
      const bytes = await node.rawBlock(height);
      if (height !== forgedAt || rootOf?.field !== "stateRoot") return bytes;
      const [header, ...rest] = decodeRlp(bytes) as [string[], ...string[]];
      const changed = header.map((item, place) => (place === 3 ? rootOf.audit : item));
      return Buffer.from(encodeRlp([changed, ...rest]).slice(2), "hex");
    };
    const { difference } = await audit({ ...made, rawBlock }, range);
    expect(difference).toMatchObject({ height: forgedAt, field: "coins made of nothing" });
  });

  async function journalOf(height: Height) {
    return node.journal(served.chain.stores.blocks.hashOf(height));
  }
});

describe("causeway audit execution", () => {
  const lines: string[] = [];
  const warnings: string[] = [];
  let home = "";

  beforeAll(() => {
    home = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-audit-"));
    fs.writeFileSync(path.join(home, "genesis.json"), encodeGenesis(genesis));
  });
  afterAll(() => {
    fs.rmSync(home, { recursive: true, force: true });
  });

  function run(options: Record<string, string>, json = false): Promise<number> {
    lines.length = 0;
    warnings.length = 0;
    return runAuditExecution(
      { home, portOffset: 0, json, env: {}, signal, print: (line) => lines.push(line) },
      {
        from: "1",
        to: "head",
        node: served.url,
        genesis: path.join(home, "genesis.json"),
        ...options,
      },
      (line) => warnings.push(line),
    );
  }

  it("exits 0 with a table or one JSON document when all agrees", async () => {
    const { hash } = served.chain.view.head();
    expect(await run({ hash })).toBe(0);
    expect(lines.at(-1)).toBe("Executed again with the same result; no difference.");
    expect(await run({ from: "2", to: "3" }, true)).toBe(0);
    expect(JSON.parse(lines.join(""))).toMatchObject({
      schemaVersion: 1,
      ok: true,
      from: 2,
      to: 3,
      blocks: 2,
      difference: null,
    });
  });

  it("exits 1 when the last block is not the one that is believed in", async () => {
    expect(await run({ hash: `0x${"ab".repeat(32)}` })).toBe(1);
    expect(lines.join("\n")).toContain("DIFFERENCE in block 6: hash");
  });

  it("exits 2 and says why where an audit cannot be made", async () => {
    for (const [options, reason] of [
      [{ from: "0" }, "--from does not take"],
      [{ from: "7" }, "There is nothing to audit from 7 to 6"],
      [{ to: "99" }, "the head is 6"],
      [{ hash: "0x12" }, "--hash does not take"],
      [{ node: "nowhere" }, "--node does not take"],
      [{ genesis: "/nonexistent" }, "/nonexistent"],
    ] as const) {
      expect(await run(options)).toBe(2);
      expect(warnings.join("\n")).toContain(reason);
    }
  });
});
