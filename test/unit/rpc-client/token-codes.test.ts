/** What a contract runs: its code, and whatever its proxy names. */
import { expect, it } from "@jest/globals";
import { id, keccak256 } from "ethers";
import { parseAddress } from "../../../chain/address.js";
import { RpcError } from "../../../rpc-client/errors.js";
import type { JsonRpcClient, RpcCall, RpcOutcome } from "../../../rpc-client/json-rpc.js";
import { tokenCodeCalls } from "../../../rpc-client/tokens/token-codes.js";

const { signal } = new AbortController();
const CODE = "0x6001";
const ZEROS = `0x${"00".repeat(32)}`;
const TOKEN = parseAddress(`0x${"70".repeat(20)}`);
const BEACON = `0x${"bb".repeat(20)}`;

const word = (byte: string) => `0x${"00".repeat(12)}${byte.repeat(20)}`;
const less = (hash: string) => `0x${(BigInt(hash) - 1n).toString(16).padStart(64, "0")}`;

/** By the texts that their standards hash. */
const SLOTS = {
  eip1967: less(id("eip1967.proxy.implementation")),
  zeppelin: id("org.zeppelinos.proxy.implementation"),
  eip1822: id("PROXIABLE"),
  beacon: less(id("eip1967.proxy.beacon")),
};

type Words = Partial<Record<keyof typeof SLOTS, string>>;

/** A node with one contract; what its beacon answers, or that it fails. */
function nodeWith(words: Words, answer: string | RpcError = "0x") {
  const storage = new Map(
    Object.entries(words).map(([name, value]) => [SLOTS[name as keyof typeof SLOTS], value]),
  );
  const calls: unknown[] = [];
  const outcomeOf = ({ method, params }: RpcCall): RpcOutcome => {
    if (method === "eth_getCode") return { ok: true, result: CODE };
    if (method === "eth_getStorageAt") {
      return { ok: true, result: storage.get(String(params[1])) ?? ZEROS };
    }
    calls.push(params);
    return answer instanceof RpcError ? { ok: false, error: answer } : { ok: true, result: answer };
  };
  const rpc: JsonRpcClient = {
    request: () => Promise.reject(new Error("all is asked in batches")),
    batch: async (asked) => asked.map(outcomeOf),
    close: () => undefined,
  };
  const read = async () => {
    const [code] = await tokenCodeCalls(rpc).tokenCodes([{ contract: TOKEN, at: 7 }], { signal });
    expect(code?.codeHash).toBe(keccak256(CODE));
    return code?.implementation;
  };
  return { calls, read };
}

const implementationOf = (words: Words, answer?: string | RpcError) =>
  nodeWith(words, answer).read();

const FAILED = new RpcError("execution reverted", { rpcCode: 3, method: "eth_call" });

it.each(["eip1967", "zeppelin", "eip1822"] as const)(
  "is what the slot of %s names",
  async (name) => {
    expect(await implementationOf({ [name]: word("aa") })).toBe(word("aa"));
  },
);

it("is zeros where nothing is named", async () => {
  const { calls, read } = nodeWith({});
  expect([await read(), calls]).toEqual([ZEROS, []]);
});

it("is another one with whatever stands in any slot: one that is set hides none", async () => {
  const all = await Promise.all([
    implementationOf({ zeppelin: word("aa") }),
    implementationOf({ zeppelin: word("cc") }),
    // As code of the second one may write it, to look like the first.
    implementationOf({ eip1967: word("aa"), zeppelin: word("cc") }),
    implementationOf({ eip1967: word("cc"), zeppelin: word("aa") }),
    implementationOf({ eip1967: word("aa"), eip1822: word("cc") }),
    implementationOf({ eip1967: word("aa"), beacon: word("bb") }, word("cc")),
  ]);
  expect(new Set(all).size).toBe(all.length);
});

it("is another one with what a beacon says, and with another beacon", async () => {
  const beacon = word("bb");
  const { calls, read } = nodeWith({ beacon }, word("aa"));
  const first = await read();
  // Asked as the proxy asks it.
  expect(calls).toEqual([[expect.objectContaining({ from: TOKEN, to: BEACON }), "0x7"]]);
  const others = await Promise.all([
    implementationOf({ beacon }, word("cc")),
    implementationOf({ beacon: word("dd") }, word("aa")),
    implementationOf({ beacon }, FAILED),
  ]);
  expect(new Set([first, ...others, ZEROS]).size).toBe(5);
  expect(await implementationOf({ beacon }, word("aa"))).toBe(first);
});

it("is not told where the node does not tell what a beacon says", async () => {
  const late = new RpcError("missing trie node", { rpcCode: -32_000, method: "eth_call" });
  await expect(implementationOf({ beacon: word("bb") }, late)).rejects.toBe(late);
});
