/** Data that a range of blocks left out: asked for by transaction, and only what the block told is taken. */
import { describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { type Hex, parseHash32 } from "../../../chain/hex.js";
import { withLeftOut } from "../../../rpc-client/indexing/left-out.js";
import type { JournaledTransaction } from "../../../rpc-client/journal-codec.js";
import type { JsonRpcClient } from "../../../rpc-client/json-rpc.js";

const { signal } = new AbortController();
const ALICE = parseAddress(`0x${"a1".repeat(20)}`);
const TOPIC = parseHash32(`0x${"01".repeat(32)}`);
const bytes = (count: number, byte = "7f"): Hex => `0x${byte.repeat(count)}`;

const SHORT = { address: ALICE, topics: [TOPIC], data: bytes(3) };
const LONG = { address: ALICE, topics: [], data: bytes(100) };

/** As a block tells it: 300 bytes of input, and logs of 3 and 100 bytes. */
const TOLD: JournaledTransaction = {
  hash: parseHash32(`0x${"cd".repeat(32)}`),
  index: 0,
  status: 1,
  from: ALICE,
  to: ALICE,
  contractAddress: undefined,
  gasUsed: 21_000n,
  gasPriceAtoken: 1n,
  nonce: 0n,
  input: bytes(256),
  inputSizeBytes: 300,
  changes: [],
  logs: [SHORT, { ...LONG, data: "0x", leftOutBytes: 100 }],
};

/** A node that answers the two questions, and the methods it was asked. */
function nodeWith(input: Hex, logs: readonly unknown[]) {
  const asked: string[] = [];
  const rpc: JsonRpcClient = {
    request: (method) => {
      asked.push(method);
      return Promise.resolve(method === "eth_getTransactionByHash" ? { input } : { logs });
    },
    batch: () => Promise.reject(new Error("one at a time")),
    close: () => undefined,
  };
  return { rpc, asked };
}

describe("data that a block left out", () => {
  it("are put into it, and nobody asks for what is whole", async () => {
    const { rpc, asked } = nodeWith(bytes(300), [SHORT, LONG]);
    const whole = { ...TOLD, input: bytes(300), logs: [SHORT, LONG] };
    expect(await withLeftOut(rpc, [whole, TOLD], { signal })).toEqual([whole, whole]);
    expect(asked).toEqual(["eth_getTransactionByHash", "eth_getTransactionReceipt"]);
  });

  it.each([
    ["a shorter input", bytes(299), [SHORT, LONG]],
    ["an input that begins otherwise", bytes(300, "7e"), [SHORT, LONG]],
    ["a log less", bytes(300), [SHORT]],
    ["longer data", bytes(300), [SHORT, { ...LONG, data: bytes(101) }]],
    ["other data where they were told", bytes(300), [{ ...SHORT, data: bytes(3, "7e") }, LONG]],
    ["another topic", bytes(300), [{ ...SHORT, topics: [] }, LONG]],
    ["another contract", bytes(300), [SHORT, { ...LONG, address: `0x${"b2".repeat(20)}` }]],
  ] as const)("are not taken from a node that tells %s", async (_what, input, logs) => {
    const answer = withLeftOut(nodeWith(input, logs).rpc, [TOLD], { signal });
    await expect(answer).rejects.toMatchObject({ code: "BAD_ANSWER" });
  });
});
