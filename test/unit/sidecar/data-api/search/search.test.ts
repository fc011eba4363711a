/** /search/transactions over HTTP, against the replies of /block themselves. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { createGate } from "../../../../helpers/gate.js";
import type { LevelStore } from "../../../../../runtime/files/level-store.js";
import { encodeBlock, EncodedBlock } from "../../../../../sidecar/rosetta/encoded-block.js";
import type { RosettaBlock } from "../../../../../sidecar/rosetta/operations.js";
import { ERROR_TABLE, type SidecarErrorCode } from "../../../../../sidecar/rosetta/errors.js";
import { hashOf } from "../../../../helpers/chains/journal-chain.js";
import { addressOf, bruteForce, TOKENS, TYPES } from "../../index/random-blocks.js";
import {
  chain,
  indexed,
  type Page,
  post,
  random,
  search,
  SEED,
  seen,
  served,
  serverOver,
  type Shown,
  stores,
  tip,
} from "./searched-chain.js";

type Operation = RosettaBlock["transactions"][number]["operations"][number];

/** Random values of each condition with what they mean to a reader of the blocks. */
const CONDITIONS: Record<string, () => [unknown, (operation: Operation) => boolean]> = {
  account_identifier: () => {
    const address = addressOf(random.integer(26));
    return [{ address }, ({ account }) => account.address.toLowerCase() === address];
  },
  address: () => {
    const address = addressOf(random.integer(26));
    return [address, ({ account }) => account.address.toLowerCase() === address];
  },
  currency: () => {
    const token = TOKENS.tokens[random.integer(3)];
    const currency = token?.currency ?? { symbol: "TOKEN", decimals: 18 };
    const text = JSON.stringify(currency);
    return [currency, ({ amount }) => JSON.stringify(amount.currency) === text];
  },
  type: () => {
    const type = random.pick(TYPES);
    return [type, (operation) => operation.type === type];
  },
  status: () => {
    const status = random.pick(["SUCCESS", "FAILURE"]);
    return [status, (operation) => operation.status === status];
  },
  success: () => {
    const success = random.integer(2) === 0;
    return [success, ({ status }) => (status === "SUCCESS") === success];
  },
  coin_identifier: () => [{ identifier: "any:1" }, () => false],
};

describe("/search/transactions", () => {
  it(`finds what the blocks show, with any combination of conditions (seed ${SEED})`, async () => {
    for (let round = 0; round < 250; round += 1) {
      const operator = ["and", "or", undefined][random.integer(3)];
      const names = new Set(
        Array.from({ length: random.integer(4) }, () => random.pick(Object.keys(CONDITIONS))),
      );
      const chosen = [...names].map((name) => [name, ...(CONDITIONS[name]?.() ?? [])] as const);
      const max_block = random.integer(3) === 0 ? undefined : random.integer(tip + 20);
      const expected = bruteForce(seen, max_block ?? tip, ({ operations }) => {
        const held = chosen.map(([, , holds]) => holds !== undefined && operations.some(holds));
        return operator === "or" && held.length > 0 ? held.some(Boolean) : held.every(Boolean);
      });
      const offset = random.integer(expected.length + 2);
      const limit = random.integer(20);
      const fields = {
        operator,
        max_block,
        offset,
        limit,
        ...Object.fromEntries(chosen.map(([name, value]) => [name, value])),
      };
      const { status, body } = await search(fields);
      const page = expected.slice(offset, offset + limit);
      const end = offset + page.length;
      expect({ round, fields, status, body }).toEqual({
        round,
        fields,
        status: 200,
        body: {
          transactions: page.map(({ height, position }) => ({
            block_identifier: seen[height]?.block_identifier,
            transaction: seen[height]?.transactions[position],
          })),
          total_count: expected.length,
          ...(page.length > 0 && end < expected.length ? { next_offset: end } : {}),
        },
      });
    }
  });

  it("finds a transaction by its hash in any case, and a block-level one by the block's", async () => {
    const wanted = seen[60]?.transactions[0]?.transaction_identifier.hash ?? "";
    for (const hash of [wanted, `0x${wanted.slice(2).toUpperCase()}`]) {
      const { body } = await search({ transaction_identifier: { hash } });
      expect(body.transactions.map(({ transaction }) => transaction)).toEqual([
        seen[60]?.transactions[0],
      ]);
      expect(body).toMatchObject({ total_count: 1 });
      expect(body).not.toHaveProperty("next_offset");
    }
    const hash = seen[60]?.block_identifier.hash;
    const { body } = await search({
      transaction_identifier: { hash },
      type: "CALL",
      operator: "or",
    });
    expect(body.total_count).toBeGreaterThan(1);
    const below = await search({ transaction_identifier: { hash }, max_block: 59 });
    expect(below.body).toEqual({ transactions: [], total_count: 0 });
    const unknown = await search({ transaction_identifier: { hash: hashOf("never sent") } });
    expect(unknown.body).toEqual({ transactions: [], total_count: 0 });
  });

  it("never finds a sub-account or a coin, which this chain does not have", async () => {
    const address = addressOf(0);
    for (const condition of [
      { account_identifier: { address, sub_account: { address: "stake" } } },
      { coin_identifier: { identifier: "x" } },
    ]) {
      expect((await search(condition)).body).toEqual({ transactions: [], total_count: 0 });
      const alone = (await search({ address })).body;
      expect((await search({ ...condition, address, operator: "or" })).body).toEqual(alone);
    }
  });

  it("pages to the end by next_offset, everything once", async () => {
    const found: Shown[] = [];
    let offset: number | undefined = 0;
    while (offset !== undefined) {
      const { body }: Page = await search({ max_block: tip - 5, offset, limit: 70, type: "FEE" });
      found.push(...body.transactions);
      offset = body.next_offset;
    }
    const expected = bruteForce(seen, tip - 5, ({ operations }) =>
      operations.some(({ type }) => type === "FEE"),
    );
    expect(expected.length).toBeGreaterThan(300);
    expect(found.map(({ transaction }) => transaction)).toEqual(
      expected.map(({ height, position }) => seen[height]?.transactions[position]),
    );
  });

  it("returns 100 by default, never more than 1,000, and the count alone for 0", async () => {
    const many = Array.from({ length: 1_300 }, (_unused, position) => ({
      transaction_identifier: { hash: hashOf(`many ${position}`) },
      operations: seen[0]?.transactions[0]?.operations ?? [],
    }));
    const block = { ...(chain[0] as RosettaBlock), transactions: many };
    const big = serverOver(await indexed("many", [block]), [block]);
    const sizes = [undefined, 1_000, 5_000, Number.MAX_SAFE_INTEGER, 0].map(async (limit) => {
      const { body } = await search({ limit }, big);
      return [body.transactions.length, body.total_count, body.next_offset];
    });
    expect(await Promise.all(sizes)).toEqual([
      [100, 1_300, 100],
      [1_000, 1_300, 1_000],
      [1_000, 1_300, 1_000],
      [1_000, 1_300, 1_000],
      [0, 1_300, undefined],
    ]);
  });

  it("names no next offset that leads nowhere: whoever follows it comes to an end", async () => {
    for (const limit of [0, 1, 7]) {
      for (let offset: number | undefined = 3; offset !== undefined; ) {
        const { body }: Page = await search({ max_block: 5, offset, limit });
        if (body.next_offset !== undefined) expect(body.next_offset).toBeGreaterThan(offset);
        offset = body.next_offset;
      }
    }
  });

  it("ends a page of large transactions early, and goes on from there", async () => {
    const input = `0x${"ab".repeat(500_000)}`;
    const block = {
      ...(chain[0] as RosettaBlock),
      transactions: Array.from({ length: 20 }, (_unused, position) => ({
        transaction_identifier: { hash: hashOf(`large ${position}`) },
        operations: [],
        metadata: { input },
      })),
    };
    const large = serverOver(await indexed("large", [block]), [block]);
    const first = (await search({}, large)).body;
    expect(first).toMatchObject({ total_count: 20, next_offset: 8 });
    expect(first.transactions).toHaveLength(8);
    const rest = (await search({ offset: 16 }, large)).body;
    expect(rest.transactions).toHaveLength(4);
    expect(rest.next_offset).toBeUndefined();
  });

  it("reads large blocks one by one, and ends a page that has read enough of them", async () => {
    const filler = {
      transaction_identifier: { hash: hashOf("filler") },
      operations: [],
      metadata: { input: `0x${"ab".repeat(5_000_000)}` },
    };
    const [own] = (chain[0] as RosettaBlock).transactions;
    const blocks = Array.from({ length: 30 }, (_unused, index) => ({
      ...(chain[index] as RosettaBlock),
      transactions: [{ ...own, transaction_identifier: { hash: hashOf(`own ${index}`) } }],
    })) as RosettaBlock[];
    // Ten megabytes each, of which one transaction is asked for; the bytes are all the same ones.
    const [first] = blocks as [RosettaBlock];
    const transactions = [...first.transactions, filler];
    const { record } = encodeBlock({ ...first, transactions });
    let [reading, most, reads] = [0, 0, 0];
    const encoded = blocks.map((block) => new EncodedBlock(block.block_identifier, record));
    const large = serverOver(await indexed("large blocks", blocks), blocks, encoded, async () => {
      reads += 1;
      reading += 1;
      most = Math.max(most, reading);
      await nextTurn();
      reading -= 1;
    });
    const { body } = await search({ limit: 30 }, large);
    expect({ count: body.transactions.length, next: body.next_offset, most, reads }).toEqual({
      count: 14,
      next: 14,
      most: 1,
      reads: 14,
    });
  });

  it("runs few searches at once, however many are asked for, and answers them all", async () => {
    let [reading, most] = [0, 0];
    const store = stores[0] as LevelStore;
    const busy = serverOver(store, chain, served, async () => {
      reading += 1;
      most = Math.max(most, reading);
      for (let turn = 0; turn < 3; turn += 1) await nextTurn();
      reading -= 1;
    });
    // A page of one transaction reads one block.
    const conditions = { type: "CALL", status: "SUCCESS", limit: 1 };
    const asked = Array.from({ length: 50 }, () => search(conditions, busy));
    const pages = await Promise.all(asked);
    expect(new Set(pages.map(({ status, body }) => `${status} ${body.total_count}`)).size).toBe(1);
    expect(pages[0]?.status).toBe(200);
    expect(most).toBeLessThanOrEqual(3);
  });

  it("answers who names a transaction at once, however many lists are read", async () => {
    const store = stores[0] as LevelStore;
    const named = hashOf("named while others read");
    const gate = createGate();
    const busy = serverOver(store, chain, served, () => gate.opened);
    const conditions = { type: "CALL", status: "SUCCESS", limit: 1 };
    const broad = Array.from({ length: 20 }, () => search(conditions, busy));
    const { status, body } = await search({ transaction_identifier: { hash: named } }, busy);
    expect([status, body.total_count]).toEqual([200, 0]);
    gate.open();
    await Promise.all(broad);
  });

  const ADDRESS = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
  it.each<[string, Record<string, unknown>, SidecarErrorCode, string]>([
    ["a wrong checksum", { address: ADDRESS.replace("aA", "Aa") }, "INVALID_ACCOUNT", "address"],
    ["a name", { address: "alice" }, "INVALID_ACCOUNT", "address"],
    [
      "an account's metadata",
      { account_identifier: { address: ADDRESS, metadata: { a: 1 } } },
      "INVALID_ACCOUNT",
      "account_identifier.metadata",
    ],
    ["an unlisted status", { status: "reverted" }, "INVALID_REQUEST", "status"],
    ["a status in another case", { status: "success" }, "INVALID_REQUEST", "status"],
    ["an unlisted type", { type: "TRANSFER" }, "INVALID_REQUEST", "type"],
    [
      "an unknown currency",
      { currency: { symbol: "TOKEN", decimals: 6 } },
      "UNKNOWN_CURRENCY",
      "currency",
    ],
    [
      "a token by its symbol alone",
      { currency: { symbol: "USDX", decimals: 6 } },
      "UNKNOWN_CURRENCY",
      "currency",
    ],
    [
      "half a hash",
      { transaction_identifier: { hash: "0x12" } },
      "INVALID_REQUEST",
      "transaction_identifier.hash",
    ],
  ])("refuses %s by name", async (_name, fields, code, field) => {
    const { status, body } = await post("/search/transactions", fields);
    expect({ status, code: body.code, field: body.details.field }).toEqual({
      status: 500,
      code: ERROR_TABLE[code].number,
      field,
    });
  });

  it.each([
    ["operator", "xor"],
    ["max_block", -1],
    ["offset", 2 ** 53],
    ["limit", 1.5],
    ["success", "true"],
    ["colour", "red"],
  ])("refuses %s: %p", async (field, value) => {
    const { status, body } = await post("/search/transactions", { [field]: value });
    expect({ status, code: body.code }).toEqual({ status: 500, code: 1 });
  });
});
