/** Tokens of a run of blocks where two nodes are asked: a single one makes no deposit of nothing. */
import { describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { type Hash32, parseHash32 } from "../../../chain/hex.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { readTokenRun, type TokenNode } from "../../../deposit-watcher/tokens/token-run.js";
import { RpcError } from "../../../rpc-client/errors.js";
import type { TokenSide } from "../../../deposit-watcher/tokens/token-side.js";

const ALICE = parseAddress(`0x${"a1".repeat(20)}`);
const TOKEN = parseAddress(`0x${"70".repeat(20)}`);
const hash = (digit: string): Hash32 => parseHash32(`0x${digit.repeat(64)}`);
const blockHash = hash("b");
const parentHash = hash("a");
const alice = parseCustomerId("alice");
const watched = {
  has: (address: string) => address === ALICE,
  customerOf: (address: string) => (address === ALICE ? alice : undefined),
  walletFrom: () => undefined,
  assetOf: (contract: string) => (contract === TOKEN ? "T" : undefined),
};
const side: TokenSide = {
  asset: "T",
  contract: TOKEN,
  address: ALICE,
  units: 5n,
  counterparty: undefined,
  height: 9,
  blockHash,
  txHash: hash("c"),
  txIndex: 0,
  opIndex: 2,
};

/** A node that shows so many units of Alice after block 9, to who names it by its hash. */
function nodeWith(units: bigint): TokenNode {
  const after = new Map<unknown, bigint>([
    [parentHash, 0n],
    [blockHash, units],
  ]);
  return {
    transferLogs: () => Promise.resolve([]),
    tokenCodes: (places) => Promise.resolve(places.map(() => undefined)),
    tokenBalances: (queries) => Promise.resolve(queries.map(({ at }) => after.get(at))),
  };
}

const read = (first: bigint, second: bigint | TokenNode | undefined) => {
  const run = [{ height: 9, hash: blockHash, parentHash }] as never;
  const nodes = {
    first: nodeWith(first),
    second: typeof second === "bigint" ? nodeWith(second) : second,
  };
  const { signal } = new AbortController();
  const explained = async () => new Set<string>();
  const input = { run, sides: [side], contracts: [], explained };
  return readTokenRun(nodes, watched, input, { signal });
};

describe("tokens that one node shows", () => {
  it("count where there is no other one, or where it shows them, too", async () => {
    for (const second of [undefined, 5n]) {
      const { deposits } = await read(5n, second);
      expect(deposits).toMatchObject([{ customerId: "alice", asset: "T", amountUnits: 5n }]);
    }
  });

  it("are an incident where the second node does not have them", async () => {
    await expect(read(5n, 0n)).rejects.toMatchObject({
      incident: { kind: "BALANCE_MISMATCH", height: 9, details: { units: 5n, otherUnits: 0n } },
    });
  });

  it("wait for a second node that has deleted what it would have to show, and that is said", async () => {
    const pruned = new RpcError("pruned", { rpcCode: 4444, method: "eth_call" });
    const second = { ...nodeWith(5n), tokenBalances: () => Promise.reject(pruned) };
    await expect(read(5n, second)).rejects.toMatchObject({
      code: "NOT_READY",
      message:
        `the second node has deleted what ${ALICE} had of ${TOKEN} after block 8 and 1 more ` +
        "balances, which is booked when it shows that, too: name one that keeps old states in " +
        "node.second-json-rpc-url, or none",
    });
  });
});
