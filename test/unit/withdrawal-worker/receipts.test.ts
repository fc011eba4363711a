/** Receipts of many payments, of which there may be more than an answer of the node holds. */
import { expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { type Hash32, parseHash32 } from "../../../chain/hex.js";
import { NodeFault, RpcError } from "../../../rpc-client/errors.js";
import type { JsonRpcClient, RpcOutcome } from "../../../rpc-client/json-rpc.js";
import { untoldOf } from "../../../withdrawal-worker/lane/receipts.js";
import { createWalletNode } from "../../../withdrawal-worker/lane/wallet-node.js";

const { signal } = new AbortController();

/** Of ten payments. */
const HASHES = Array.from({ length: 10 }, (_, index) => hashOf(index + 1));

function hashOf(number: number): Hash32 {
  return parseHash32(`0x${number.toString(16).padStart(64, "0")}`);
}

/** A fault of the exchange, or of each answer; undefined where it is answered. */
interface Faults {
  readonly ofBatch?: (hashes: readonly Hash32[]) => Error | undefined;
  readonly ofReceipt?: (place: number, hash: Hash32) => RpcError | undefined;
  readonly ofHeight?: () => RpcError | undefined;
}

/** A node that has receipts of all but the last payment, with what was asked for at once. */
function openNode(faults: Faults, receiptsBudgetMs = 60_000) {
  const asked: (readonly Hash32[])[] = [];
  const outcomeOf = (error: RpcError | undefined, result: unknown): RpcOutcome => {
    return error === undefined ? { ok: true, result } : { ok: false, error };
  };
  const rpc: Pick<JsonRpcClient, "batch"> = {
    batch: async ([height, ...calls]) => {
      expect(height?.method).toBe("eth_blockNumber");
      const hashes = calls.map(({ params: [hash] }) => hash as Hash32);
      asked.push(hashes);
      const fault = hashes.length === 0 ? undefined : faults.ofBatch?.(hashes);
      if (fault !== undefined) throw fault;
      const receipts = hashes.map((hash, place) =>
        outcomeOf(faults.ofReceipt?.(place, hash), receiptOf(hash)),
      );
      return [outcomeOf(faults.ofHeight?.(), "0x64"), ...receipts];
    },
  };
  const identity = { chainId: 6_940n, genesisHash: hashOf(0) };
  const node = createWalletNode(rpc as JsonRpcClient, identity, { receiptsBudgetMs });
  const read = async () => {
    const { height, byHash, untold } = await node.receipts(HASHES, { signal });
    const late = HASHES.flatMap((hash) => {
      const reason = untold.get(hash);
      return reason === undefined ? [] : [[hash, reason]];
    });
    return { height, found: HASHES.filter((hash) => byHash.has(hash)), untold: late };
  };
  return { asked, read, sizes: () => asked.map(({ length }) => length) };
}

function receiptOf(transactionHash: Hash32): unknown {
  if (transactionHash === HASHES.at(-1)) return null;
  const [from, to] = [1, 2].map((n) => parseAddress(`0x${`0${n}`.repeat(20)}`));
  const place = { blockHash: HASHES[0], blockNumber: "0x63", transactionIndex: "0x0" };
  const outcome = { status: "0x1", gasUsed: "0x5208", effectiveGasPrice: "0x1", logs: [] };
  return { transactionHash, ...place, from, to, contractAddress: null, ...outcome };
}

function refusal(rpcCode: number, text: string): RpcError {
  return new RpcError(text, { rpcCode, method: "eth_getTransactionReceipt" });
}

const tooLarge = () => refusal(-32_003, "response too large");
const busy = () => refusal(-32_005, "too many large answers are asked for at once");

const ALL = { height: 100, found: HASHES.slice(0, 9), untold: [] };

it("are all read where an answer holds three of them", async () => {
  const node = openNode({ ofReceipt: (place) => (place >= 3 ? tooLarge() : undefined) });
  expect(await node.read()).toEqual(ALL);
  expect(node.sizes()).toEqual([10, 3, 4, 1]);
});

it.each([
  ["refused", tooLarge],
  ["too long for us", () => new NodeFault("ANSWER_TOO_LARGE", "too long")],
] as const)("are all read in smaller parts where an exchange is %s", async (_, fault) => {
  const node = openNode({ ofBatch: ({ length }) => (length > 2 ? fault() : undefined) });
  expect(await node.read()).toEqual(ALL);
  expect(node.sizes()).toEqual([10, 5, 3, 2, 4, 2, 4, 2, 4, 2, 2]);
});

it.each(["ofBatch", "ofReceipt"] as const)(
  "that are too large even alone are no missing ones, whatever is refused (%s)",
  async (kind) => {
    const [, , large] = HASHES;
    const node = openNode({
      ofBatch: (hashes) =>
        kind === "ofBatch" && hashes.includes(large as Hash32) ? tooLarge() : undefined,
      ofReceipt: (_, hash) => (kind === "ofReceipt" && hash === large ? tooLarge() : undefined),
    });
    const found = ALL.found.filter((hash) => hash !== large);
    expect(await node.read()).toEqual({ ...ALL, found, untold: [[large, "too-large"]] });
  },
);

it("are told with a height where each is too large", async () => {
  const node = openNode({ ofBatch: tooLarge });
  const untold = HASHES.map((hash) => [hash, "too-large"]);
  expect(await node.read()).toEqual({ height: 100, found: [], untold });
});

it("are asked for no more by a node that is busy, and those that it told are kept", async () => {
  const node = openNode({ ofReceipt: (place, hash) => (hash > hashOf(4) ? busy() : undefined) });
  const untold = HASHES.slice(4).map((hash) => [hash, "no-time"]);
  expect(await node.read()).toEqual({ height: 100, found: HASHES.slice(0, 4), untold });
  expect(node.sizes()).toEqual([10, 4, 2, 1]);
  const silent = openNode({ ofHeight: busy, ofReceipt: busy });
  await expect(silent.read()).rejects.toThrow("too many large answers");
  expect(silent.sizes()).toEqual([10, 5, 3, 2, 1]);
});

it("that there was no time for come first at the next look, in turn", async () => {
  const node = openNode({ ofReceipt: (place) => (place >= 4 ? tooLarge() : undefined) }, 0);
  const looks = [];
  for (let look = 0; look < 4; look += 1) looks.push(await node.read());
  const late = (hashes: readonly Hash32[]) => hashes.map((hash) => [hash, "no-time"]);
  expect(looks.map(({ untold }) => untold)).toEqual([
    late(HASHES.slice(4)),
    late([...HASHES.slice(0, 4), ...HASHES.slice(8)]),
    late(HASHES.slice(2, 8)),
    late([...HASHES.slice(0, 2), ...HASHES.slice(6)]),
  ]);
});

it("are untold of a payment of which one attempt is, and too large before late", () => {
  const [told, late, large] = HASHES.map((hash) => ({ hash }));
  if (told === undefined || late === undefined || large === undefined) throw new Error("too few");
  const untold = new Map([
    [late.hash, "no-time"],
    [large.hash, "too-large"],
  ] as const);
  expect(untoldOf([told], { untold })).toBeUndefined();
  expect(untoldOf([told, late], { untold })).toBe("no-time");
  expect(untoldOf([late, large], { untold })).toBe("too-large");
});
