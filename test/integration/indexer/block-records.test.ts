/**
 * Blocks as their records say what they say as JSON: transactions of every kind, long data, failed ones, those
 * of Cosmos, the first block; and records that somebody has changed are refused.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Interface, Wallet } from "ethers";
import { parseAddress, toBech32 } from "../../../chain/address.js";
import type { BlockRange } from "../../../rpc-client/indexing/block-range.js";
import { RpcError } from "../../../rpc-client/errors.js";
import { createEvmClient } from "../../../rpc-client/evm-client.js";
import { createJsonRpcClient, type JsonRpcClient } from "../../../rpc-client/json-rpc.js";
import { compileSolidity } from "../../helpers/contracts/solidity.js";
import { signWithCosmJs } from "../../helpers/cosmos/cosmjs.js";
import { call, IndexerStage } from "../../helpers/indexer/indexer.js";
import { createRandom } from "../../helpers/random.js";

const SOURCE = `// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;
contract Loud {
  event Said(address indexed who, bytes32 indexed what, bytes data);
  event Nothing() anonymous;
  function say(bytes calldata data) external payable {
    emit Said(msg.sender, keccak256(data), data); emit Nothing();
    if (msg.value > 0) { (bool ok,) = address(0xbeef).call{value: msg.value}(""); require(ok); }
  }
  function fail() external payable { emit Nothing(); revert(unicode"nicht möglich"); }
}`;
const compiled = compileSolidity({ "L.sol": SOURCE })["Loud"];
const abi = new Interface(compiled?.abi as never);
const MNEMONIC = "test test test test test test test test test test test junk";
const cosmonaut = Wallet.fromPhrase(MNEMONIC);
const { signal } = new AbortController();
const METHOD = "causeway_getBlockRange";

let stage: IndexerStage;
let rpc: JsonRpcClient;

/** The node as a client of before sees it, which knows no records. */
const asJson = (): JsonRpcClient => ({
  ...rpc,
  request: (method, params, options) =>
    rpc.request(method, method === METHOD ? params.slice(0, 3) : params, options),
});

const rangeOf = (client: JsonRpcClient, from = 0, maxBytes = 2 ** 24): Promise<BlockRange> =>
  createEvmClient(client).blockRange({ from, to: stage.height, maxBytes }, { signal });

beforeAll(async () => {
  stage = await IndexerStage.open();
  rpc = createJsonRpcClient({ url: stage.chain.url, timeoutMs: 240_000 });
  const loud = await stage.deploy(compiled?.bytecode ?? "0x");
  const statuses = await stage.mine(
    call(loud, abi, "say", `0x${"ab".repeat(5)}`),
    call(loud, abi, "say", `0x${"cd".repeat(3_000)}`),
    { ...call(loud, abi, "say", "0x"), value: 7n },
    { ...call(loud, abi, "fail"), value: 9n },
    { to: cosmonaut.address, value: 10n ** 18n },
    { to: stage.faucet.address, value: 3n },
  );
  expect(statuses).toEqual([1, 1, 1, 0, 1, 1]);
  await stage.mine();
  const common = { chainId: 6940, nonce: 0, gasLimit: 60_000n, to: loud, value: 1n };
  const list = [{ address: loud, storageKeys: [`0x${"01".repeat(32)}`] }];
  const raws = [
    await cosmonaut.signTransaction({
      ...common,
      type: 2,
      maxFeePerGas: 90_000_000n,
      maxPriorityFeePerGas: 30_000_000n,
      accessList: list,
    }),
    await cosmonaut.signTransaction({ ...common, nonce: 1, type: 1, gasPrice: 40_000_000n }),
  ];
  const { committed } = await stage.chain.mine(raws, []);
  stage.height = committed.block.header.height;
  const from = toBech32(parseAddress(cosmonaut.address));
  const sends = signWithCosmJs(
    MNEMONIC,
    ["rent, 1\n2 \u0007 ünö", ""].map((memo, turn) => ({
      chainId: "chain_6940-1",
      sequence: 2 + turn,
      gas: 70_000,
      fee: [{ denom: "atoken", amount: "4000" }],
      memo,
      messages: [
        {
          typeUrl: "/cosmos.bank.v1beta1.MsgSend",
          // The second one has not so much.
          value: {
            fromAddress: from,
            toAddress: toBech32(parseAddress(stage.faucet.address)),
            amount: [{ denom: "atoken", amount: turn === 0 ? "77" : `9${"0".repeat(30)}` }],
          },
        },
      ],
    })),
  );
  await stage.mineWith(
    sends.map(({ raw }) => raw),
    { to: cosmonaut.address, value: 5n },
  );
  for (let block = 0; block < 3; block++) {
    await stage.mine(...Array.from({ length: 90 }, () => ({ to: cosmonaut.address, value: 1n })));
  }
});

afterAll(async () => {
  rpc.close();
  await stage.close();
});

describe("blocks as their records", () => {
  it("say what they say as JSON", async () => {
    const records = await rangeOf(rpc);
    const json = await rangeOf(asJson());
    expect(records).toEqual(json);
    expect(records.blocks).toHaveLength(stage.height + 1);
    const kinds = records.blocks.flatMap(({ transactions }) =>
      transactions.map(({ type, cosmos, status }) => `${type ?? cosmos?.memo}/${status}`),
    );
    expect([...new Set(kinds)].toSorted()).toEqual(
      [
        "/0",
        "0/0",
        "0/1",
        "1/0",
        "2/0",
        `${records.blocks[5]?.transactions[1]?.cosmos?.memo}/1`,
      ].toSorted(),
    );
    const answer = (await rpc.request(METHOD, ["0x0", "0x9", 1e6, 1], { signal })) as object;
    expect(Object.keys(answer)).toEqual(["records", "next", "head"]);
  });

  it("come from anywhere on, and end where there is enough", async () => {
    const whole = await rangeOf(rpc);
    for (let from = 0; from <= stage.height; from++) {
      for (const maxBytes of [1, 100_000]) {
        const { blocks, next } = await rangeOf(rpc, from, maxBytes);
        expect(blocks.length).toBeGreaterThan(0);
        expect(blocks).toEqual(whole.blocks.slice(from, from + blocks.length));
        expect(next ?? stage.height + 1).toBe(from + blocks.length);
      }
    }
    expect(await rangeOf(rpc, stage.height + 1).catch(() => "refused")).toMatchObject({
      blocks: [],
    });
  });

  it("are JSON from a node that knows none, or others", async () => {
    const asked: number[] = [];
    const older: JsonRpcClient = {
      ...rpc,
      request: (method, params, options) => {
        if (method !== METHOD) return rpc.request(method, params, options);
        asked.push(params.length);
        if (params.length <= 3) return rpc.request(method, params, options);
        return Promise.reject(
          new RpcError("too many arguments, want at most 3", { rpcCode: -32602, method }),
        );
      },
    };
    expect(await rangeOf(older)).toEqual(await rangeOf(rpc));
    expect(asked).toEqual([4, 3]);
    const other = await rpc.request(METHOD, ["0x0", "0x1", 1e6, 2], { signal });
    expect(Object.keys(other as object)).toEqual(["blocks", "next", "head"]);
  });

  it("are refused where somebody has changed them, or are another block's", async () => {
    const seed = Number(process.env["CAUSEWAY_TEST_SEED"] ?? 20261123);
    console.log(`block records: seed ${seed} (CAUSEWAY_TEST_SEED)`);
    const random = createRandom(seed);
    const answer = await rpc.request(
      METHOD,
      ["0x0", `0x${stage.height.toString(16)}`, 2 ** 24, 1],
      { signal },
    );
    const text = JSON.stringify(answer);
    const whole = await rangeOf(rpc);
    let refused = 0;
    for (let turn = 0; turn < 150; turn++) {
      const changed = JSON.parse(text);
      const block = changed.records[random.integer(changed.records.length)];
      const page = block.pages[0] ?? [];
      const [holder, key] = [
        [block, "outline"],
        [block, "changes"],
        [page, random.integer(4)],
        [block.cosmos, 0],
      ][random.integer(4)] as [Record<string | number, string>, string | number];
      const bytes = Buffer.from(holder[key] ?? "", "base64");
      if (bytes.length === 0) continue;
      const cut = random.integer(2) === 0 ? bytes.subarray(0, random.integer(bytes.length)) : bytes;
      if (cut === bytes) {
        const at = random.integer(bytes.length);
        bytes[at] = (bytes[at] ?? 0) ^ (1 << random.integer(8));
      }
      holder[key] = cut.toString("base64");
      const lying = { ...rpc, request: () => Promise.resolve(changed) };
      // A bit of a value is another value: what comes is whole in itself, or nothing comes.
      const outcome = await rangeOf(lying).then(
        ({ blocks }) => blocks.length,
        (error: { code?: string }) => error.code,
      );
      expect([whole.blocks.length, "BAD_ANSWER"]).toContain(outcome);
      if (outcome === "BAD_ANSWER") refused += 1;
    }
    expect(refused).toBeGreaterThan(50);
    for (const damage of ["pages", "cosmos"]) {
      const changed = JSON.parse(text);
      const at = changed.records.findIndex(
        (one: Record<string, unknown[]>) => (one[damage]?.length ?? 0) > 0,
      );
      changed.records[at][damage].pop();
      const lying = { ...rpc, request: () => Promise.resolve(changed) };
      await expect(rangeOf(lying)).rejects.toMatchObject({ code: "BAD_ANSWER" });
    }
  });
});
