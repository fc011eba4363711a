/** Real hosts in one process, on free ports of 127.0.0.1. */
import { expect } from "@jest/globals";
import { randomBytes } from "node:crypto";
import { Host, type HostOptions } from "../../../node/p2p/host.js";
import { Network, type NetworkOptions } from "../../../node/p2p/network.js";
import { type NodeKey, nodeKeyOf } from "../../../node/p2p/node-key.js";
import type { KnownPeerAddress } from "../../../node/p2p/peers/peer-address.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createLogger, type Logger } from "../../../runtime/process/logger.js";
import { freePort } from "../../helpers/ports.js";
import { until } from "../../helpers/until.js";
import { FakeChain, FakeDriver, FakePool, hashOf } from "./fakes.js";

/** A host with the address that others dial. */
export interface TestHost {
  readonly host: Host;
  readonly key: NodeKey;
  readonly address: KnownPeerAddress;
}

/** Change the level to see what happens. */
export const testLog = createLogger({ component: "p2p", level: "silent" });

const TEST_TOPICS = ["a", "b"];

const running = new Set<Host>();

/** Starts a host; `stopHosts` ends it. */
export async function startHost(options: Partial<HostOptions> = {}): Promise<TestHost> {
  const key = options.key ?? nodeKeyOf(randomBytes(32));
  const listen = options.listen ?? { host: "127.0.0.1", port: await freePort() };
  const host = await Host.start({
    maxInboundPeers: 20,
    maxOutboundPeers: 20,
    reservedIds: new Set(),
    topics: TEST_TOPICS,
    clock: systemClock,
    log: testLog,
    ...options,
    key,
    listen,
  });
  running.add(host);
  return { host, key, address: { nodeId: key.nodeId, ...listen } };
}

/** Ends one host. */
export async function stopHost({ host }: TestHost): Promise<void> {
  running.delete(host);
  await host.stop();
}

/** Ends all hosts of the test. */
export async function stopHosts(): Promise<void> {
  const hosts = [...running];
  running.clear();
  await Promise.all(hosts.map((host) => host.stop()));
}

/** A whole network part with fakes behind it. */
export interface TestNode {
  readonly network: Network;
  readonly key: NodeKey;
  readonly address: KnownPeerAddress;
  readonly driver: FakeDriver;
  readonly pool: FakePool;
  readonly chain: FakeChain;
  readonly faults: unknown[];
}

const runningNodes = new Set<TestNode>();

/** Starts a node; `stopNodes` ends it. */
export async function startNode(
  options: Partial<NetworkOptions> & {
    readonly chain?: FakeChain;
    readonly pool?: FakePool;
    readonly log?: Logger;
  } = {},
): Promise<TestNode> {
  const { chain = new FakeChain(0), pool = new FakePool(), log = testLog, ...rest } = options;
  const key = options.key ?? nodeKeyOf(randomBytes(32));
  const listen = options.listen ?? { host: "127.0.0.1", port: await freePort() };
  const faults: unknown[] = [];
  const network = await Network.start(
    {
      externalAddress: "",
      persistentPeers: [],
      seeds: [],
      pex: false,
      seedMode: false,
      maxInboundPeers: 20,
      maxOutboundPeers: 10,
      unconditionalPeerIds: [],
      privatePeerIds: [],
      addressBookFile: undefined,
      moniker: "test",
      version: "1.2.3",
      rpcAddress: "tcp://127.0.0.1:26657",
      chainId: "test-1",
      genesisHash: hashOf("genesis"),
      ...rest,
      key,
      listen,
    },
    {
      blocks: chain,
      pool,
      clock: systemClock,
      log,
      random: Math.random,
      onFault: (error) => faults.push(error),
    },
    new AbortController().signal,
  );
  const driver = new FakeDriver();
  network.attach(driver);
  pool.onAdmitted = (transactions) => network.onAdmitted(transactions);
  const address = { nodeId: key.nodeId, ...listen };
  const node = { network, key, address, driver, pool, chain, faults };
  runningNodes.add(node);
  return node;
}

/** Ends one node. */
export async function stopNode(node: TestNode): Promise<void> {
  runningNodes.delete(node);
  await node.network.stop();
}

/** Ends all nodes of the test; none may have had a fault in the background. */
export async function stopNodes(): Promise<void> {
  const nodes = [...runningNodes];
  runningNodes.clear();
  await Promise.all(nodes.map(({ network }) => network.stop()));
  expect(nodes.flatMap(({ faults }) => faults)).toEqual([]);
}

/** Awaits that each node is connected with so many others. */
export async function connected(...pairs: readonly (readonly [TestNode, number])[]): Promise<void> {
  await until(() => pairs.every(([{ network }, count]) => network.peers().length === count), {
    timeoutMs: 10_000,
    what: "connections",
  });
}
