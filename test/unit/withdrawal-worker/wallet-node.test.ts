/** The node as a wallet's lane sees it. */
import { afterEach, expect, it } from "@jest/globals";
import { type Address, parseAddress } from "../../../chain/address.js";
import { USUAL_ACCOUNTS } from "../../../chain/chain-accounts.js";
import { parseHash32, toQuantity } from "../../../chain/hex.js";
import { KnownAccounts } from "../../../rpc-client/chain-accounts.js";
import { createEvmClient } from "../../../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../../../rpc-client/json-rpc.js";
import { createWalletNode } from "../../../withdrawal-worker/lane/wallet-node.js";
import { type FakeNode, RpcFault, startFakeNode } from "../../helpers/chains/fake-node.js";

const HASH = `0x${"ab".repeat(32)}`;
const WALLET = parseAddress(`0x${"0a".repeat(20)}`);
const BURN = parseAddress(`0x${"b0".repeat(20)}`);
const IDENTITY = { chainId: 6_940n, genesisHash: parseHash32(HASH) };
const { signal } = new AbortController();

let chain: FakeNode;

afterEach(() => chain.close());

it("is not looked at before it has told whom nobody pays on its chain", async () => {
  chain = await startFakeNode({
    eth_chainId: () => "0x1b1c",
    eth_syncing: () => false,
    eth_blockNumber: () => "0x7",
    eth_getBlockByNumber: ([number]) => {
      return { number, hash: HASH, parentHash: HASH, timestamp: "0x6ab13b80" };
    },
    eth_getTransactionCount: () => "0x0",
    eth_getBalance: () => "0x5",
    eth_gasPrice: () => "0x1",
    eth_capabilities: () => {
      throw new RpcFault(-32_000, "starting");
    },
  });
  const rpc = createJsonRpcClient({ url: chain.url, timeoutMs: 5_000 });
  const chainAccounts = new KnownAccounts(createEvmClient(rpc));
  const node = createWalletNode(rpc, IDENTITY, { chainAccounts });
  await expect(node.view(WALLET, { signal })).rejects.toThrow("starting");
  const told = { ...USUAL_ACCOUNTS, burnAddress: BURN };
  chain.methods.set("eth_capabilities", () => ({ chainAccounts: told }));
  expect(await node.view(WALLET, { signal })).toMatchObject({ height: 7, balanceAtoken: 5n });
  expect(chainAccounts.current.burnAddress).toBe(BURN);
});

it("is not believed where another chain's tells what the right one was asked for", async () => {
  let exchanges = 0;
  const methods = {
    eth_chainId: () => (exchanges === 2 ? "0x1" : "0x1b1c"),
    eth_syncing: () => false,
    eth_blockNumber: () => "0x7",
    eth_getBlockByNumber: ([number]: readonly unknown[]) => {
      return { number, hash: HASH, parentHash: HASH, timestamp: "0x6ab13b80" };
    },
    eth_getTransactionCount: () => "0x9",
    eth_getBalance: () => "0x5",
    eth_gasPrice: () => "0x1",
    eth_capabilities: () => ({}),
  };
  chain = await startFakeNode(methods, {
    wireFault: () => {
      exchanges += 1;
      return undefined;
    },
  });
  const rpc = createJsonRpcClient({ url: chain.url, timeoutMs: 5_000 });
  const node = createWalletNode(rpc, IDENTITY);
  await expect(node.view(WALLET, { signal })).rejects.toMatchObject({ code: "WRONG_NODE" });
  expect(exchanges).toBe(2);
  expect(await node.view(WALLET, { signal })).toMatchObject({ nonce: 9n, blockHash: HASH });
  expect(exchanges).toBe(4);
});

it("does not know where code is as of a block that the node does not have yet", async () => {
  const late = parseAddress(`0x${"01".repeat(20)}`);
  const code = parseAddress(`0x${"02".repeat(20)}`);
  const plain = parseAddress(`0x${"03".repeat(20)}`);
  const answers = new Map<unknown, string>([
    [code, "0x60"],
    [plain, "0x"],
  ]);
  chain = await startFakeNode({
    eth_getCode: ([address]) => {
      const answer = answers.get(address);
      if (answer === undefined) throw new RpcFault(-32_000, "header not found");
      return answer;
    },
  });
  const rpc = createJsonRpcClient({ url: chain.url, timeoutMs: 5_000 });
  const node = createWalletNode(rpc, IDENTITY);
  const haveCode = () => node.haveCode([late, code, plain], { signal, at: 7 });
  expect(await haveCode()).toEqual([undefined, true, false]);
  chain.methods.set("eth_getCode", () => {
    throw new RpcFault(-32_000, "starting");
  });
  await expect(haveCode()).rejects.toThrow("starting");
});

it("asks once whether an address has code, and for little at a time where that is too much", async () => {
  const large = parseAddress(`0x${"c0".repeat(20)}`);
  const others = Array.from({ length: 40 }, (_, index) => {
    return parseAddress(`0x${(index + 1).toString(16).padStart(40, "0")}`);
  });
  const asked: unknown[] = [];
  const batches: number[] = [];
  let roomFor = Number.POSITIVE_INFINITY;
  chain = await startFakeNode(
    {
      eth_getCode: ([address]) => {
        if ((batches.at(-1) ?? 0) > roomFor) throw new RpcFault(-32_003, "response too large");
        asked.push(address);
        return address === large ? "0x60" : "0x";
      },
    },
    {
      wireFault: (methods) => {
        batches.push(methods.length);
        return undefined;
      },
    },
  );
  const node = createWalletNode(
    createJsonRpcClient({ url: chain.url, timeoutMs: 5_000 }),
    IDENTITY,
  );
  const all = [...Array.from({ length: 100 }, () => large), ...others, large];
  for (const [room, sizes] of [
    [Number.POSITIVE_INFINITY, [41]],
    [20, [41, 16, 16, 9]],
  ] as const) {
    roomFor = room;
    asked.length = batches.length = 0;
    expect(await node.haveCode(all, { signal, at: 7 })).toEqual(all.map((one) => one === large));
    expect(asked).toHaveLength(41);
    expect(new Set(asked)).toEqual(new Set([large, ...others]));
    expect(batches).toEqual(sizes);
  }
});

it("goes on without what it has no room for, of one address or of several together", async () => {
  const [plain, large] = [1, 2].map((n) => parseAddress(`0x${`0${n}`.repeat(20)}`)) as [
    Address,
    Address,
  ];
  chain = await startFakeNode({
    eth_getCode: ([address]) => {
      if (address === large) throw new RpcFault(-32_003, "response too large");
      return "0x";
    },
  });
  const rpc = createJsonRpcClient({ url: chain.url, timeoutMs: 5_000 });
  const haveCode = () => {
    return createWalletNode(rpc, IDENTITY).haveCode([plain, large], { signal, at: 7 });
  };
  expect(await haveCode()).toEqual([false, "too-much"]);
  const later = "too many large answers are asked for at once";
  chain.methods.set("eth_getCode", ([address]) => {
    if (address === large) throw new RpcFault(-32_005, later);
    return "0x";
  });
  expect(await haveCode()).toEqual([false, "too-much"]);
});

it("is told at once by a node that answers nothing for a while, however much is asked for", async () => {
  const addresses = Array.from({ length: 400 }, (_, index) => {
    return parseAddress(`0x${(index + 1).toString(16).padStart(40, "0")}`);
  });
  let exchanges = 0;
  chain = await startFakeNode(
    {
      eth_getCode: () => {
        throw new RpcFault(-32_005, "request rate exceeded");
      },
    },
    {
      wireFault: () => {
        exchanges += 1;
        return undefined;
      },
    },
  );
  const node = createWalletNode(
    createJsonRpcClient({ url: chain.url, timeoutMs: 5_000 }),
    IDENTITY,
  );
  const asked = node.haveCode(addresses, { signal, at: 7 });
  await expect(asked).rejects.toThrow("request rate exceeded");
  expect(exchanges).toBe(2);
});

it("learns of each payment by itself where the answers about several are too large together", async () => {
  const refusing = parseAddress(`0x${"01".repeat(20)}`);
  const verbose = parseAddress(`0x${"02".repeat(20)}`);
  const payable = parseAddress(`0x${"03".repeat(20)}`);
  // Whoever is paid chooses what it reverts with.
  const words = new Map([
    [refusing, 3_000],
    [verbose, 9_000],
  ]);
  chain = await startFakeNode({
    eth_estimateGas: ([message]) => {
      const bytes = words.get(Reflect.get(Object(message), "to"));
      if (bytes === undefined) return "0xc350";
      throw new RpcFault(3, "execution reverted", `0x${"00".repeat(bytes / 2)}`);
    },
  });
  const rpc = createJsonRpcClient({ url: chain.url, timeoutMs: 5_000, maxResponseBytes: 4_096 });
  const node = createWalletNode(rpc, IDENTITY);
  const asked = [refusing, refusing, verbose, payable].map((to) => {
    return { to, valueAtoken: 1n, gasPriceAtoken: 1n, gasMax: 1_000_000n };
  });
  expect(await node.estimate(WALLET, asked, { signal, at: 7 })).toEqual([
    { kind: "refused-by-destination", reason: "execution reverted" },
    { kind: "refused-by-destination", reason: "execution reverted" },
    { kind: "unknown", reason: "the node's answer is too large" },
    { kind: "payable", gas: 50_000n },
  ]);
});

it("tells the lowest height where receipts are more than one exchange holds", async () => {
  let looks = 0;
  chain = await startFakeNode({
    eth_blockNumber: () => {
      looks += 1;
      return toQuantity(looks === 1 ? 100 : 95);
    },
    eth_getTransactionReceipt: () => null,
  });
  const rpc = createJsonRpcClient({ url: chain.url, timeoutMs: 5_000 });
  const node = createWalletNode(rpc, IDENTITY);
  const hashes = Array.from({ length: 600 }, (_, index) => {
    return parseHash32(`0x${index.toString(16).padStart(64, "0")}`);
  });
  const { height, byHash } = await node.receipts(hashes, { signal });
  expect([height, byHash.size, looks]).toEqual([95, 0, 2]);
});

it("tells from when on it has receipts, by blocks and never by states", async () => {
  const HEAD_SECONDS = 1_790_000_000;
  let capabilities: () => unknown = () => ({});
  let shown: () => unknown = () => null;
  let chainId = "0x1b1c";
  const header = { number: "0x7", hash: HASH, parentHash: HASH };
  chain = await startFakeNode({
    eth_chainId: () => chainId,
    eth_getBlockByNumber: ([at]) => {
      if (at === "0x64") return shown();
      return { ...header, timestamp: toQuantity(HEAD_SECONDS) };
    },
    eth_capabilities: () => capabilities(),
  });
  const rpc = createJsonRpcClient({ url: chain.url, timeoutMs: 5_000 });
  const kept = () => createWalletNode(rpc, IDENTITY).keptBlocks({ signal });
  const from = (oldestBlock: string) => ({ disabled: false, oldestBlock });
  const all = { oldestSeconds: -Infinity, headSeconds: HEAD_SECONDS };
  const whole = [
    () => ({}),
    () => ({ state: from("0x64"), blocks: from("0x0") }),
    () => ({ blocks: from("0x1"), receipts: from("0x1") }),
    () => {
      throw new RpcFault(-32_601, "the method eth_capabilities does not exist");
    },
  ];
  for (const [index, answer] of whole.entries()) {
    capabilities = answer;
    expect([index, await kept()]).toEqual([index, all]);
  }
  shown = () => ({ ...header, timestamp: toQuantity(HEAD_SECONDS - 120) });
  for (const kind of ["blocks", "receipts", "tx"]) {
    capabilities = () => ({ state: from("0x0"), blocks: from("0x0"), [kind]: from("0x64") });
    expect([kind, await kept()]).toEqual([
      kind,
      { oldestSeconds: HEAD_SECONDS - 120, headSeconds: HEAD_SECONDS },
    ]);
  }
  // Deleted in between, or another node behind a balancer.
  const pruned = () => {
    throw new RpcFault(4444, "pruned history unavailable");
  };
  for (const answer of [() => null, pruned]) {
    shown = answer;
    expect(await kept()).toEqual({ oldestSeconds: Infinity, headSeconds: HEAD_SECONDS });
  }
  chainId = "0x1";
  await expect(kept()).rejects.toMatchObject({ code: "WRONG_NODE" });
});
