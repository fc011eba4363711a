/** What a page of a contract's views asks of the node, whoever wrote the contract. */
import { expect, it } from "@jest/globals";
import { id } from "ethers";
import { parseAddress } from "../../../../chain/address.js";
import { keccak256Hex } from "../../../../chain/hashes.js";
import { hexToBytes } from "../../../../chain/hex.js";
import { contractCallRoutes } from "../../../../explorer/pages/contracts/calls.js";
import type { PageContext } from "../../../../explorer/pages/context.js";
import { ChainSource } from "../../../../explorer/sources/chain-source.js";
import { RpcError } from "../../../../rpc-client/errors.js";
import type { EvmClient } from "../../../../rpc-client/evm-client.js";
import type { JsonRpcClient, RpcCall, RpcOutcome } from "../../../../rpc-client/json-rpc.js";
import { all, textOf } from "../../../helpers/pages/html.js";
import { openPage, shownContent } from "../../../helpers/pages/explorer-page.js";

const CONTRACT = parseAddress(`0x${"c0".repeat(20)}`);
const CODE = "0x6001";
const VIEWS = 40;
const NODE_GAS_PER_MS = 1_600;
const HASH = `0x${"11".repeat(32)}`;
const HEADER = {
  number: "0x9",
  timestamp: "0x1",
  hash: HASH,
  parentHash: HASH,
  stateRoot: HASH,
  transactionsRoot: HASH,
  receiptsRoot: HASH,
  miner: CONTRACT,
  gasUsed: "0x0",
  gasLimit: "0x1",
};

const abi = Array.from({ length: VIEWS }, (_, index) => ({
  type: "function",
  name: `f${index}`,
  inputs: [],
  outputs: [{ type: "uint256", name: "" }],
  stateMutability: "view",
}));

/** A node on which a view needs so much gas, and time by the gas that it uses up. */
function viewsThatNeed(neededGas: number) {
  let nowMs = 0;
  let calls = 0;
  const outcomeOf = ({ params }: RpcCall): RpcOutcome => {
    const [{ gas }] = params as [{ gas: string }];
    calls += 1;
    nowMs += Math.min(Number(gas), neededGas) / NODE_GAS_PER_MS;
    if (Number(gas) >= neededGas) return { ok: true, result: `0x${"7".padStart(64, "0")}` };
    const error = new RpcError("out of gas", { rpcCode: -32_000, method: "eth_call" });
    return { ok: false, error };
  };
  const rpc = {
    request: () => Promise.resolve(HEADER),
    batch: (given: readonly RpcCall[]) => Promise.resolve(given.map(outcomeOf)),
  } as unknown as JsonRpcClient;
  const evm = { getCode: () => Promise.resolve(CODE) } as unknown as EvmClient;
  const contract = { address: CONTRACT, codeHash: keccak256Hex(hexToBytes(CODE)), abi };
  const context = {
    chain: new ChainSource(rpc, evm),
    clock: { nowMs: () => nowMs, monotonicMs: () => nowMs },
    contracts: { store: { get: () => Promise.resolve(contract) }, verifier: undefined },
  } as unknown as PageContext;
  const [route] = contractCallRoutes(context);
  return {
    open: async (query: Record<string, string> = {}) => {
      const { content } = await openPage(route, { parameter: CONTRACT, query });
      const { root, text } = shownContent(content);
      return { text, buttons: all(root, "button").map(textOf) };
    },
    took: () => ({ ms: nowMs, calls }),
  };
}

it("are all called where they only tell what is stored", async () => {
  const node = viewsThatNeed(30_000);
  const { text, buttons } = await node.open();
  expect(buttons).toEqual([]);
  expect(text.match(/0: 7/g)).toHaveLength(VIEWS);
  expect(node.took().calls).toBe(VIEWS);
});

it("are called for as long as a page may take, and the others have a button", async () => {
  const node = viewsThatNeed(4_000_000);
  const { text, buttons } = await node.open();
  expect(node.took().ms).toBeLessThan(3_000);
  // All of them: what ran out is said, what was not called is not.
  expect(buttons).toHaveLength(VIEWS);
  expect(text.match(/given 200000 gas at most/g)).toHaveLength(node.took().calls);
});

it("have all the gas that a reader's question may have, where one was chosen", async () => {
  const node = viewsThatNeed(4_000_000);
  const { text } = await node.open({ f: id("f3()").slice(0, 10) });
  expect(text).toContain("0: 7");
  expect(text).not.toContain("gas at most");
  expect(node.took().calls).toBe(1);
});
