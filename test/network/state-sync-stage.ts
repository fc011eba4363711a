/** What the tests of state sync share: a chain with contracts and snapshots, and nodes that join it. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { expect } from "@jest/globals";
import { privateKeyToAddress } from "../../chain/signing/account-key.js";
import { bytesToHex, hexToBytes } from "../../chain/hex.js";
import { signLegacy } from "../../chain/transaction.js";
import { homePaths } from "../../cli/home/home.js";
import { until } from "../helpers/until.js";
import { comet, evm, evmBatch } from "./calls.js";
import { type NetworkNode, type RunningNetwork, writeSetting } from "./network.js";
import { untilMined } from "./traffic.js";

/** Stores 42 in slot 0; a call returns the slot. */
const INIT_CODE = "0x602a5f55675f545f5260205ff35f5260086018f3";

/** Longest until a node has joined, on a busy machine. */
const JOIN_TIMEOUT_MS = 300_000;

const POLL_MS = 200;

/** Short beside what a node does when it is struck. */
const STRIKE_POLL_MS = 10;

/** Sets a key of app.toml of a node that is down. */
export function writeAppSetting(node: NetworkNode, key: string, value: string): void {
  const file = path.join(homePaths(node.home).config, "app.toml");
  const text = readFileSync(file, "utf8");
  const changed = text.replace(new RegExp(`^${key} = .*$`, "m"), `${key} = ${value}`);
  if (changed === text) throw new RangeError(`${file} has no other ${key}`);
  writeFileSync(file, changed);
}

/** Deploys contracts on all of these nodes' chain; their addresses. */
export async function deployContracts(
  network: RunningNetwork,
  count: number,
): Promise<readonly string[]> {
  const [first] = network.validators;
  if (first === undefined) throw new Error("no validator");
  const key = hexToBytes(network.faucetKey);
  const from = privateKeyToAddress(key);
  const start = BigInt(await evm<string>(first, "eth_getTransactionCount", [from, "pending"]));
  const raws = Array.from({ length: count }, (_, index) =>
    bytesToHex(
      signLegacy(
        {
          chainId: 6940n,
          nonce: start + BigInt(index),
          gasPriceAtoken: 25_000_000n,
          gasLimit: 200_000n,
          to: undefined,
          valueAtoken: 0n,
          data: hexToBytes(INIT_CODE),
        },
        key,
      ),
    ),
  );
  const calls = raws.map((raw) => ({ method: "eth_sendRawTransaction", params: [raw] }));
  const hashes = (await evmBatch<string>(first, calls)).map(({ result, error }) => {
    if (result === undefined) throw new Error(JSON.stringify(error));
    return result;
  });
  await untilMined([first], hashes);
  const receipts = await evmBatch<{ contractAddress: string }>(
    first,
    hashes.map((hash) => ({ method: "eth_getTransactionReceipt", params: [hash] })),
  );
  return receipts.map(({ result }) => result?.contractAddress ?? "");
}

/** Folder of the snapshot of a height. */
export function snapshotFolder(node: NetworkNode, height: number): string {
  return path.join(node.home, "data", "snapshots", String(height));
}

/** Resolves when all of these have the snapshot of a height. */
export async function untilSnapshot(nodes: readonly NetworkNode[], height: number): Promise<void> {
  const isThere = (node: NetworkNode) => existsSync(path.join(snapshotFolder(node, height)));
  await until(
    async () => {
      await pause(POLL_MS);
      return nodes.every(isThere);
    },
    { timeoutMs: 120_000, what: `snapshots of height ${height}` },
  );
}

/** The hash of a header, as an operator takes it from a server. */
export async function trustedHash(node: NetworkNode, height: number): Promise<string> {
  type Commit = { signed_header: { commit: { block_id: { hash: string } } } };
  const { signed_header } = await comet<Commit>(node, `commit?height=${height}`);
  return signed_header.commit.block_id.hash;
}

/** Sets a node that is down up for state sync. */
export async function writeStateSync(
  node: NetworkNode,
  options: {
    readonly trusted: NetworkNode;
    readonly trustHeight: number;
    readonly servers: readonly string[];
  },
): Promise<void> {
  const { trusted, trustHeight, servers } = options;
  writeSetting(node, "enable", "true");
  writeSetting(node, "rpc_servers", JSON.stringify(servers.join(",")));
  writeSetting(node, "trust_height", String(trustHeight));
  writeSetting(node, "trust_hash", JSON.stringify(await trustedHash(trusted, trustHeight)));
  writeSetting(node, "discovery_time", '"1s"');
}

/** Kills a node when it is time, and starts it again. */
export async function strike(
  node: NetworkNode,
  isTime: () => boolean | Promise<boolean>,
): Promise<void> {
  await until(
    async () => {
      await pause(STRIKE_POLL_MS);
      return isTime();
    },
    { timeoutMs: 120_000, what: `${node.name} can be struck` },
  );
  await node.kill();
  await node.start();
}

/** Resolves when a node takes part, with the seconds since `startedMs`. */
export async function untilJoined(node: NetworkNode, startedMs: number): Promise<number> {
  await until(
    async () => {
      await pause(POLL_MS);
      // Between its two lives a node does not answer.
      const status = await node.status().catch(() => undefined);
      return status?.sync_info.catching_up === false;
    },
    { timeoutMs: JOIN_TIMEOUT_MS, what: `${node.name} has joined` },
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${node.lastWords()}`);
  });
  return (performance.now() - startedMs) / 1_000;
}

/** JSON-RPC's code of a call that reverted. */
const REVERTED = 3;

/** What a state-synced node answers must be what the others answer. */
export async function expectSameState(
  joined: NetworkNode,
  other: NetworkNode,
  addresses: readonly string[],
): Promise<void> {
  const height = Math.min(await joined.height(), await other.height());
  const at = `0x${height.toString(16)}`;
  const calls = addresses.flatMap((address) => [
    { method: "eth_getBalance", params: [address, at] },
    { method: "eth_getTransactionCount", params: [address, at] },
    { method: "eth_getCode", params: [address, at] },
    { method: "eth_getProof", params: [address, ["0x0"], at] },
    { method: "eth_call", params: [{ to: address }, at] },
  ]);
  const block = { method: "eth_getBlockByNumber", params: [at, true] };
  const [mine, theirs] = await Promise.all([
    evmBatch<unknown>(joined, [block, ...calls]),
    evmBatch<unknown>(other, [block, ...calls]),
  ]);
  // The chain's own contracts revert where no method is named: an answer of the state like any other.
  const faults = mine.filter(({ error }) => error !== undefined && error.code !== REVERTED);
  expect(faults).toEqual([]);
  expect(mine).toEqual(theirs);
}

/** A consensus RPC server in front of another that changes its answers. */
export async function startLiar(
  target: NetworkNode,
  change: (answer: string) => string,
): Promise<{ readonly url: string; readonly server: Server }> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks);
      const headers = { "content-type": "application/json" };
      fetch(target.cometUrl, { method: "POST", headers, body }).then(
        async (answer) => response.writeHead(200, headers).end(change(await answer.text())),
        () => response.writeHead(502).end(),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return { url: `http://127.0.0.1:${address.port}`, server };
}
