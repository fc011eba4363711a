/** `block_accounts` and `block_transactions`: answers that end where they would become too long. */
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { parseHash32 } from "../../../../chain/hex.js";
import {
  blockAccounts,
  blockTransactions,
  type ReadBlocks,
} from "../../../../sidecar/data-api/call-blocks.js";
import { EncodedBlock, encodeBlock } from "../../../../sidecar/rosetta/encoded-block.js";
import { SidecarError } from "../../../../sidecar/rosetta/errors.js";
import { hashOf, startFakeChain } from "../../../helpers/chains/journal-chain.js";
import type { FakeNode } from "../../../helpers/chains/fake-node.js";
import { call, type Online, onlineServer } from "../servers.js";

const { signal } = new AbortController();

let node: FakeNode;
let online: Online;
let blocks: ReadBlocks;

beforeAll(async () => {
  node = await startFakeChain();
  online = onlineServer(node.url);
  await online.indexed(2);
  const index = online.index.blocks;
  blocks = {
    async resolve({ index: height = 0 }) {
      const identifier = index.identifierAt(height);
      if (identifier === undefined) throw new SidecarError("BLOCK_ABOVE_TIP", { index: height });
      return identifier;
    },
    block: ({ index: height }) => index.block(height),
    kept: ({ index: height }) => index.kept(height),
    accountsOf: ({ index: height }) => index.accountsOf(height),
    keptAccounts: (height) => index.keptAccounts(height),
  };
});
afterAll(async () => {
  await online.rpc.close();
  await node.close();
});

const identifier = (index: number) => ({ index, hash: parseHash32(hashOf(`block ${index}`)) });
const ask = async (method: string, parameters: object) => {
  const { status, text } = await call(online.server, "/call", { method, parameters });
  return { status, body: JSON.parse(text) };
};

describe("blocks of /call", () => {
  it("have the accounts of a range, and transactions as /block has them", async () => {
    const { body } = await ask("block_accounts", { from_index: 0, to_index: 2 });
    expect(body.idempotent).toBe(true);
    const identifiers = body.result.blocks.map(
      (block: { block_identifier: object }) => block.block_identifier,
    );
    expect(identifiers).toEqual([0, 1, 2].map(identifier));
    const wanted = [
      { block_identifier: identifier(1), positions: [2, 0] },
      { block_identifier: identifier(0), positions: [0] },
    ];
    const { body: told } = await ask("block_transactions", { blocks: wanted });
    const whole = async (index: number) =>
      (await call(online.server, "/block", { block_identifier: { index } })).body.block;
    const [first, genesis] = [await whole(1), await whole(0)];
    expect(told.result.transactions).toEqual([
      first.transactions[2],
      first.transactions[0],
      genesis.transactions[0],
    ]);
  });

  it("end where the next piece has no room, and never before the first", async () => {
    const range = { from_index: 0, to_index: 2 };
    const wanted = { blocks: [{ block_identifier: identifier(1), positions: [0, 1, 2] }] };
    const whole = await blockAccounts(blocks, range, { signal, maxResponseBytes: 1 << 20 });
    const sizes: number[] = [];
    for (const [read, given, name] of [
      [blockAccounts, range, "blocks"],
      [blockTransactions, wanted, "transactions"],
    ] as const) {
      const listed = async (maxResponseBytes: number): Promise<unknown[]> => {
        const answer = await read(blocks, given, { signal, maxResponseBytes });
        return JSON.parse(answer.toString("utf8")).result[name];
      };
      const all = await listed(1 << 20);
      expect(await listed(1)).toEqual(all.slice(0, 1));
      const two = Buffer.byteLength(
        all
          .slice(0, 2)
          .map((each) => JSON.stringify(each))
          .join(),
      );
      expect(await listed(two)).toEqual(all.slice(0, 2));
      expect(await listed(two - 1)).toEqual(all.slice(0, 1));
      sizes.push(all.length);
    }
    expect(sizes).toEqual([3, 3]);
    expect(whole.toString("utf8")).toBe(
      (await call(online.server, "/call", { method: "block_accounts", parameters: range })).text,
    );
  });

  it("end at the tip, where another answer may be longer", async () => {
    const { body } = await ask("block_accounts", { from_index: 1, to_index: 9 });
    expect([body.result.blocks.length, body.idempotent]).toEqual([2, false]);
  });

  it("end before a second block that is not kept, and make the first one again", async () => {
    const dropped: ReadBlocks = { ...blocks, kept: () => undefined, keptAccounts: () => undefined };
    const bounds = { signal, maxResponseBytes: 1 << 20 };
    const range = { from_index: 0, to_index: 2 };
    const told = JSON.parse((await blockAccounts(dropped, range, bounds)).toString("utf8"));
    expect(told.result.blocks).toMatchObject([{ block_identifier: identifier(0) }]);
    const wanted = [1, 0].map((height) => ({
      block_identifier: identifier(height),
      positions: [0],
    }));
    const some = await blockTransactions(dropped, { blocks: wanted }, bounds);
    const { result, idempotent } = JSON.parse(some.toString("utf8"));
    const whole = await call(online.server, "/block", { block_identifier: { index: 1 } });
    expect(result.transactions).toEqual([whole.body.block.transactions[0]]);
    expect([told.idempotent, idempotent]).toEqual([false, false]);
  });

  it("are not read where none of their transactions is wanted", async () => {
    const read: number[] = [];
    const dropped: ReadBlocks = {
      ...blocks,
      kept: () => undefined,
      block(block) {
        read.push(block.index);
        return blocks.block(block);
      },
    };
    const wanted = [[], [], [0]].map((positions, index) => ({
      block_identifier: identifier(index),
      positions,
    }));
    const bounds = { signal, maxResponseBytes: 1 << 20 };
    const askFor = async (some: readonly object[]) => {
      const answer = await blockTransactions(dropped, { blocks: some }, bounds);
      return JSON.parse(answer.toString("utf8"));
    };
    expect(await askFor(wanted.slice(0, 2))).toEqual({
      result: { transactions: [] },
      idempotent: true,
    });
    expect(read).toEqual([]);
    expect((await askFor(wanted)).result.transactions).toHaveLength(1);
    expect(read).toEqual([2]);
  });

  it("hold no block for a piece of it, and end where enough of them were read", async () => {
    const { text } = await call(online.server, "/block", { block_identifier: { index: 1 } });
    const { block: whole } = JSON.parse(text);
    const [small, other] = whole.transactions;
    const large = { ...other, metadata: { input: "ab".repeat(2_500_000) } };
    const { record } = encodeBlock({ ...whole, transactions: [small, large] });
    const read: number[] = [];
    const full: ReadBlocks = {
      ...blocks,
      resolve: async ({ index = 0 }) => identifier(index),
      kept(block) {
        read.push(block.index);
        return new EncodedBlock(block, Buffer.from(record));
      },
    };
    const wanted = Array.from({ length: 64 }, (_, index) => ({
      block_identifier: identifier(index),
      positions: [0],
    }));
    const joined = jest.spyOn(Buffer, "concat");
    const bounds = { signal, maxResponseBytes: 8 << 20 };
    const answer = await blockTransactions(full, { blocks: wanted }, bounds);
    const pieces = joined.mock.calls.at(-1)?.[0] ?? [];
    joined.mockRestore();
    const held = new Set(pieces.map(({ buffer }) => buffer));
    const heldBytes = [...held].reduce((sum, { byteLength }) => sum + byteLength, 0);
    expect(pieces.length).toBeGreaterThan(read.length);
    expect(heldBytes).toBeLessThan(record.length);
    const { result } = JSON.parse(answer.toString("utf8"));
    expect(result.transactions).toEqual(read.map(() => small));
    expect(read).toHaveLength(Math.ceil((128 << 20) / record.length));
  });

  it("are refused where there is no such block or transaction", async () => {
    const above = await ask("block_accounts", { from_index: 3, to_index: 4 });
    expect([above.status, above.body.code]).toEqual([500, 202]);
    const other = { index: 1, hash: hashOf("block 2") };
    for (const positions of [[0], []]) {
      const mixed = { blocks: [{ block_identifier: other, positions }] };
      expect((await ask("block_transactions", mixed)).body.code).toBe(203);
    }
    const none = { blocks: [{ block_identifier: identifier(1), positions: [0, 3] }] };
    const { body } = await ask("block_transactions", none);
    expect([body.code, body.details.field]).toEqual([212, "parameters.blocks[0].positions[1]"]);
  });
});
