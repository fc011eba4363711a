/** mesh-check over a small scripted Data API: what a real kit does not show by itself. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { createLimiter } from "../../../../cli/mesh-check/limiter.js";
import { type FakeNode, startFakeNode } from "../../../helpers/chains/fake-node.js";
import { freePort } from "../../../helpers/ports.js";
import { runMeshCheck } from "../../../mesh/run-mesh-check.js";
import {
  ALICE,
  BOB,
  BOB_STAKED,
  type FakeDataApi,
  type FakeTransaction,
  GOLD,
  type Side,
  startFakeDataApi,
  TOKEN,
} from "./fake-data-api.js";

const hash = (n: number) => `0x${n.toString(16).padStart(64, "0")}`;

const side = (account: object, value: bigint, currency: object = TOKEN): Side => ({
  account,
  value,
  currency,
});

const pay = (n: number, from: object, to: object, value: bigint): FakeTransaction => ({
  hash: hash(n),
  sides: [side(from, -value), side(to, value)],
});

/** Block 3 holds what needs care: a second currency, a sub-account, a further transaction. */
const BLOCKS: readonly (readonly FakeTransaction[])[] = [
  [{ hash: hash(1), sides: [{ ...side(ALICE, 1_000n), type: "GENESIS" }] }],
  [pay(2, ALICE, BOB, 100n)],
  [],
  [
    pay(3, BOB, BOB_STAKED, 40n),
    { ...pay(4, ALICE, BOB, 7n), isFurther: true },
    { hash: hash(5), sides: [side(ALICE, 55n, GOLD)] },
  ],
  [],
  [{ hash: hash(6), sides: [side(ALICE, -5n, GOLD), side(BOB, 5n, GOLD)] }],
  [],
  [],
  [],
];

const refusal = (retriable: boolean) => ({
  status: 500,
  body: { code: 1, message: "no", retriable },
});

describe("mesh-check over a scripted server", () => {
  let api: FakeDataApi;
  beforeAll(async () => {
    api = await startFakeDataApi(BLOCKS);
  });
  beforeEach(() => {
    api.override = () => undefined;
    api.allow = {};
    api.requests.length = 0;
  });
  afterAll(() => api.close());

  const check = (...words: string[]) => runMeshCheck(["--url", api.url, "--json", ...words]);

  it("adds up currencies, sub-accounts and transactions that /block only names", async () => {
    const { code, document } = await check();
    expect(document.faults).toEqual([]);
    expect(code).toBe(0);
    expect(document).toMatchObject({ from: 0, to: 8, transactionCount: 6, operationCount: 10 });
    expect(document.currencies).toEqual([`GOLD ${GOLD.metadata.contractAddress}`, "TOKEN"]);
    expect(document.accountCount).toBe(3);
  });

  it("asks for each changed account by index and by hash, and before the block once", async () => {
    await check();
    const asked = api.requests
      .filter(({ path }) => path === "/account/balance")
      .filter(({ body }) => JSON.stringify(body["account_identifier"]) === JSON.stringify(BOB))
      .map(({ body }) => JSON.stringify(body["block_identifier"]));
    expect(asked).toEqual(expect.arrayContaining(['{"index":0}', '{"index":1}']));
    expect(asked.filter((block) => block.includes("hash"))).toHaveLength(3);
  });

  it("tries again what the server calls retriable", async () => {
    let failures = 2;
    api.override = (path) => (path === "/block" && failures-- > 0 ? refusal(true) : undefined);
    expect((await check()).code).toBe(0);
    expect(failures).toBeLessThan(0);
  });

  it("names the block that the server refuses for good", async () => {
    api.override = (path, body) =>
      path === "/block" && JSON.stringify(body).includes('"index":3') ? refusal(false) : undefined;
    const { code, document } = await check();
    expect(code).toBe(1);
    expect(document.to).toBe(2);
    expect(document.faults).toEqual([
      { code: "BLOCK_UNREADABLE", blockIndex: 3, message: "/block: no" },
    ]);
  });

  it("names the account whose balance the server refuses", async () => {
    api.override = (path, body) =>
      path === "/account/balance" && JSON.stringify(body["account_identifier"]).includes("sub_")
        ? refusal(false)
        : undefined;
    const { code, document } = await check();
    expect(code).toBe(1);
    expect(document.faults.map((fault) => [fault.code, fault.account])).toContainEqual([
      "BALANCE_REFUSED",
      `${BOB.address} (delegated)`,
    ]);
  });

  it("finds coins that were there before the first operation", async () => {
    api.override = (path, body) => {
      const isBob = JSON.stringify(body["account_identifier"]) === JSON.stringify(BOB);
      if (path !== "/account/balance" || !isBob) return undefined;
      const { index } = body["block_identifier"] as { index?: number };
      if (index !== 0) return undefined;
      const balances = [{ currency: TOKEN, value: "9" }];
      return { status: 200, body: { block_identifier: { index, hash: hash(0xb10c) }, balances } };
    };
    const { document } = await check();
    expect(document.faults[0]).toMatchObject({
      code: "BALANCE_WITHOUT_OPERATION",
      blockIndex: 0,
      account: BOB.address,
    });
  });

  it("looks at balances that no operation names, and chooses them by the seed", async () => {
    // Wrong after block 7 alone: neither a change nor the tip shows it.
    api.override = (path, body) => {
      const wanted = JSON.stringify([body["account_identifier"], body["block_identifier"]]);
      if (path !== "/account/balance" || wanted !== JSON.stringify([BOB, { index: 7 }])) {
        return undefined;
      }
      const currencies = body["currencies"] as object[];
      const balances = currencies.map((currency) => ({ currency, value: "1" }));
      return {
        status: 200,
        body: { block_identifier: { index: 7, hash: hash(0xb10c + 7) }, balances },
      };
    };
    const codes: number[] = [];
    for (let seed = 0; seed < 16; seed += 1) {
      const { code, document } = await check("--seed", String(seed));
      codes.push(code);
      const again = await check("--seed", String(seed));
      expect(again.document.faults).toEqual(document.faults);
      if (code === 0) continue;
      expect(document.faults[0]).toMatchObject({
        code: "BALANCE_WITHOUT_OPERATION",
        blockIndex: 7,
        account: BOB.address,
      });
    }
    expect(new Set(codes)).toEqual(new Set([0, 1]));
  });

  it("finds an account below zero", async () => {
    api.override = (path, body) => {
      if (path !== "/block" || !JSON.stringify(body).includes('"index":6')) return undefined;
      const block = {
        block_identifier: { index: 6, hash: hash(0xb10c + 6) },
        parent_block_identifier: { index: 5, hash: hash(0xb10c + 5) },
        timestamp: 1_750_000_012_000,
        transactions: [
          {
            transaction_identifier: { hash: hash(99) },
            operations: [
              {
                operation_identifier: { index: 0 },
                type: "CALL",
                status: "SUCCESS",
                account: BOB,
                amount: { value: "-1000", currency: TOKEN },
              },
            ],
          },
        ],
      };
      return { status: 200, body: { block } };
    };
    const { document } = await check();
    expect(document.faults.map(({ code, blockIndex }) => [code, blockIndex])).toEqual([
      ["NEGATIVE_BALANCE", 6],
      ["BALANCE_AT_BLOCK", 6],
    ]);
  });

  it.each([
    ["an exemption", { balance_exemptions: [{ currency: TOKEN }] }, /exemptions/],
    ["a type twice", { operation_types: ["CALL", "CALL", "GENESIS"] }, /listed twice/],
    ["no lookup of the past", { historical_balance_lookup: false }, /historical/],
    [
      "an error with details",
      { errors: [{ code: 1, message: "no", retriable: false, details: {} }] },
      /details/,
    ],
  ])("does not accept options with %s", async (_name, allow, message) => {
    api.allow = allow;
    const { code, document } = await check();
    expect(code).toBe(1);
    expect(document.faults[0]).toMatchObject({ code: "NETWORK_OPTIONS" });
    expect(document.faults[0]?.message).toMatch(message);
  });

  it("stops at a thousand faults", async () => {
    const block = (index: number) => ({
      block_identifier: { index, hash: hash(0xb10c + index) },
      parent_block_identifier: { index: Math.max(0, index - 1), hash: "0x1" },
      timestamp: 1_750_000_000_000,
      transactions: Array.from({ length: 300 }, () => ({
        transaction_identifier: { hash: "0xAA" },
        operations: [],
      })),
    });
    api.override = (path, body) => {
      const { index = 0 } = (body["block_identifier"] ?? {}) as { index?: number };
      return path === "/block" ? { status: 200, body: { block: block(index) } } : undefined;
    };
    const { code, document } = await check();
    expect(code).toBe(1);
    expect(document.faults).toHaveLength(1_000);
    expect(document.to).toBeLessThan(8);
  });
});

describe("mesh-check with a node as witness", () => {
  const STRANGER = "0x00000000000000000000000000000000000000aa";
  /** What the node knows of the first blocks: the server's transactions and one more in block 2. */
  const transactions: Readonly<Record<string, readonly object[]>> = {
    "0x0": [{ hash: hash(1), from: ALICE.address, to: BOB.address }],
    "0x1": [{ hash: hash(2), from: ALICE.address, to: BOB.address }],
    "0x2": [{ hash: hash(77), from: STRANGER, to: null }],
  };
  const truth: Readonly<Record<string, readonly bigint[]>> = {
    [ALICE.address.toLowerCase()]: [1_000n, 900n, 900n],
    [BOB.address.toLowerCase()]: [0n, 100n, 100n],
    [STRANGER]: [0n, 0n, 5n],
  };
  let api: FakeDataApi;
  let node: FakeNode;
  beforeAll(async () => {
    api = await startFakeDataApi(BLOCKS.slice(0, 3));
    node = await startFakeNode({
      eth_getBlockByNumber: ([at]) => ({
        hash: hash(0xb10c + Number(at)),
        parentHash: hash(0xb10c + Number(at) - 1),
        miner: ALICE.address,
        transactions: transactions[String(at)],
      }),
      eth_getBalance: ([address, at]) =>
        `0x${(truth[String(address)]?.[Number(at)] ?? 0n).toString(16)}`,
    });
  });
  afterAll(async () => {
    await api.close();
    await node.close();
  });

  it("finds a transaction and an account that the server keeps to itself", async () => {
    const words = ["--url", api.url, "--node", node.url, "--json"];
    const { code, document } = await runMeshCheck(words);
    expect(code).toBe(1);
    expect(document.faults).toEqual([
      expect.objectContaining({ code: "BLOCK_OF_NODE", blockIndex: 2 }),
      expect.objectContaining({
        code: "BALANCE_OF_NODE",
        blockIndex: 2,
        account: "0x00000000000000000000000000000000000000AA",
      }),
    ]);
    expect(document.faults[0]?.message).toContain(hash(77));
  });
});

describe("mesh-check where nobody answers", () => {
  it("says at which address, and which flag names another one", async () => {
    const port = await freePort();
    const { code, progress } = await runMeshCheck(["--url", `http://127.0.0.1:${port}`]);
    expect(code).toBe(2);
    expect(progress).toEqual([
      `mesh-check: no connection to 127.0.0.1:${port} (ECONNREFUSED). Start what should answer there, ` +
        "or name another address: --url is a Data API, --node the JSON-RPC of its node.",
    ]);
  });
});

describe("mesh-check where coins are said to lie where the node has none", () => {
  const HIDDEN = { ...ALICE, sub_account: { address: "vault" } };
  /** The node's transaction pays ALICE's 100 to a contract, which passes them on to whom nothing names. */
  const gone = async (hidden: object, currency: object = TOKEN) => {
    const api = await startFakeDataApi([
      [{ hash: hash(1), sides: [{ ...side(ALICE, 1_000n, currency), type: "GENESIS" }] }],
      [{ hash: hash(2), sides: [side(ALICE, -100n, currency), side(hidden, 100n, currency)] }],
    ]);
    const balanceOf = (asked: object, text: unknown, at: unknown) => {
      const isAlice = String(text).toLowerCase().includes(ALICE.address.slice(2).toLowerCase());
      return !isAlice || asked !== currency ? 0n : at === "0x0" ? 1_000n : 900n;
    };
    const node = await startFakeNode({
      eth_getBlockByNumber: ([at]) => ({
        hash: hash(0xb10c + Number(at)),
        parentHash: hash(0xb10c + Number(at) - 1),
        miner: BOB.address,
        transactions: [{ hash: hash(at === "0x0" ? 1 : 2), from: ALICE.address, to: BOB.address }],
      }),
      eth_getBalance: ([address, at]) => `0x${balanceOf(TOKEN, address, at).toString(16)}`,
      eth_call: ([call, at]) => {
        const { data } = call as { readonly data: string };
        return `0x${balanceOf(GOLD, data, at).toString(16).padStart(64, "0")}`;
      },
    });
    try {
      const words = ["--url", api.url, "--node", node.url, "--json"];
      const { code, document } = await runMeshCheck(words);
      return { code, faults: document.faults };
    } finally {
      await api.close();
      await node.close();
    }
  };

  it.each([
    ["coins in a sub-account", HIDDEN, TOKEN],
    ["units of a token in a sub-account", HIDDEN, GOLD],
    ["coins on an account that is no address", { address: "vault" }, TOKEN],
  ])("finds %s", async (_what, hidden, currency) => {
    const { code, faults } = await gone(hidden, currency);
    expect(code).toBe(1);
    expect(faults).toEqual([
      expect.objectContaining({
        code: "BALANCE_OF_NODE",
        blockIndex: 1,
        message: "the balance is 100, at the node 0",
      }),
    ]);
  });

  it("finds units of a token whose contract is no address", async () => {
    const { code, faults } = await gone(BOB, { ...GOLD, metadata: { contractAddress: "gold" } });
    expect([code, new Set(faults.map((fault) => fault.code))]).toEqual([
      1,
      new Set(["BALANCE_OF_NODE"]),
    ]);
  });

  it("leaves claims alone, which no node is asked for", async () => {
    const claim = { symbol: "TOKEN_CLAIM", decimals: 18, metadata: { claim: "unbonding" } };
    expect(await gone(HIDDEN, claim)).toEqual({ code: 0, faults: [] });
  });
});

describe("mesh-check over blocks of many Cosmos transactions", () => {
  const COUNT = 2_500;
  let api: FakeDataApi;
  let node: FakeNode;
  /** Transactions that the node has, too; it shows none of them in its block. */
  let known = COUNT;
  beforeAll(async () => {
    const sides = [side(ALICE, -1n), side(BOB, 1n)];
    const sent = Array.from({ length: COUNT }, (_, n) => ({ hash: hash(1_000 + n), sides }));
    api = await startFakeDataApi([[pay(1, BOB, ALICE, 0n)], sent]);
    api.override = (path) => (path === "/account/balance" ? refusal(false) : undefined);
    node = await startFakeNode({
      eth_getBlockByNumber: ([at]) => ({
        hash: hash(0xb10c + Number(at)),
        parentHash: hash(0xb10c + Number(at) - 1),
        miner: ALICE.address,
        transactions: at === "0x0" ? [{ hash: hash(1), from: BOB.address, to: ALICE.address }] : [],
      }),
      eth_getBalance: () => "0x0",
      causeway_getTransactionStatus: ([wanted]) => {
        const isKnown = Number(wanted) < 1_000 + known;
        return isKnown ? { status: "included", height: "0x1" } : { status: "unknown" };
      },
    });
  });
  afterAll(async () => {
    await api.close();
    await node.close();
  });

  const ofNode = async () => {
    const words = ["--url", api.url, "--node", node.url, "--from", "0", "--to", "1", "--json"];
    const { document } = await runMeshCheck(words);
    return document.faults.filter(({ code }) => code === "BLOCK_OF_NODE");
  };

  it("finds all of them at the node", async () => {
    expect(await ofNode()).toEqual([]);
  });

  it("names the first that the node does not have", async () => {
    known = 1_200;
    expect((await ofNode())[0]?.message).toContain(`transaction 1200 is ${hash(2_200)}`);
  });
});

describe("a limiter", () => {
  it("runs no more at once than it may, and all in the end", async () => {
    const limit = createLimiter(3);
    let running = 0;
    let most = 0;
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        limit(async () => {
          running += 1;
          most = Math.max(most, running);
          await new Promise((resolve) => setImmediate(resolve));
          running -= 1;
          return n;
        }),
      ),
    );
    expect(most).toBe(3);
    expect(results).toEqual(Array.from({ length: 20 }, (_, n) => n));
  });

  it("goes on after a failure", async () => {
    const limit = createLimiter(1);
    await expect(limit(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
    await expect(limit(() => Promise.resolve(1))).resolves.toBe(1);
  });
});
