/** How nodes find each other: through one seed, or not at all beyond their persistent peers. */
import { describe, expect, it } from "@jest/globals";
import { setTimeout as pause } from "node:timers/promises";
import { until } from "../../helpers/until.js";
import { comet } from "../calls.js";
import { auditChain } from "../chain-audit.js";
import { type NetworkNode, untilDeciding, untilHeight, writeNetwork } from "../network.js";

const POLL_MS = 500;

/** Nodes meet when they look for peers; those that were early ask the seed again after 30 s. */
const FOUND_TIMEOUT_MS = 120_000;

/** Longer than identify, address books and several looks need to do something that they must not. */
const QUIET_MS = 10_000;

interface NetInfo {
  readonly n_peers: string;
  readonly peers: readonly {
    readonly node_info: { readonly id: string; readonly moniker: string };
    readonly is_outbound: boolean;
  }[];
}

describe("nodes that know one seed", () => {
  it("find each other and decide; a full node finds them and follows", async () => {
    const network = await writeNetwork({
      validators: 4,
      fullNodes: 2,
      blockIntervalMs: 200,
      hasShortTimeouts: true,
      settings(node, all) {
        const seed = all.find(({ name }) => name === "full0");
        const address = seed?.peerAddress.slice(seed.peerAddress.indexOf("@") + 1);
        const found = { persistent_peers: '""', pex: "true" };
        return node === seed
          ? { ...found, seed_mode: "true" }
          : { ...found, seeds: `"${address}"` };
      },
    });
    try {
      const [seed, late] = network.fullNodes;
      if (seed === undefined || late === undefined) throw new Error("no full nodes");
      await seed.start();
      const startMs = performance.now();
      await Promise.all(network.validators.map((node) => node.start()));
      await untilHeight(network.validators, 2);
      const decidingMs = performance.now() - startMs;
      await untilConnected(network.validators, network.validators);
      const foundMs = performance.now() - startMs;
      await late.start();
      const all = [...network.validators, late];
      await untilConnected([late], network.validators);
      await untilDeciding(all);
      const height = Math.min(...(await Promise.all(all.map((node) => node.height()))));
      await auditChain(all, height);
      const [deciding, found] = [decidingMs, foundMs].map((span) => Math.round(span / 1_000));
      console.log(`four validators decide after ${deciding} s, all know all after ${found} s`);
      // A seed gives addresses; it is nobody's company. It lets go of who has asked.
      for (const node of network.validators) {
        await until(async () => !(await peersOf(node)).includes("full0"), {
          timeoutMs: FOUND_TIMEOUT_MS,
          what: `the seed has let go of ${node.name}`,
        });
      }
      for (const { name, faults } of [seed, ...all]) {
        expect([name, faults]).toEqual([name, []]);
      }
    } finally {
      await network.remove();
    }
  });
});

describe("nodes without peer exchange", () => {
  it("are connected with their persistent peers only, also after restarts", async () => {
    // A chain of full nodes: each knows the one before it; the validators know each other.
    const network = await writeNetwork({
      validators: 4,
      fullNodes: 2,
      blockIntervalMs: 200,
      hasShortTimeouts: true,
      settings(node, all): Record<string, string> {
        const peer = { full0: "node0", full1: "full0" }[node.name];
        const address = all.find(({ name }) => name === peer)?.peerAddress;
        return address === undefined ? {} : { persistent_peers: `"${address}"` };
      },
    });
    const expected = new Map([
      ["node0", ["full0", "node1", "node2", "node3"]],
      ["node1", ["node0", "node2", "node3"]],
      ["node2", ["node0", "node1", "node3"]],
      ["node3", ["node0", "node1", "node2"]],
      ["full0", ["full1", "node0"]],
      ["full1", ["full0"]],
    ]);
    try {
      const all = [...network.validators, ...network.fullNodes];
      await Promise.all(all.map((node) => node.start()));
      await untilPeersAre(all, expected);
      await expectQuiet(all, expected);
      const [node0] = network.validators;
      const [full0] = network.fullNodes;
      if (node0 === undefined || full0 === undefined) throw new Error("no nodes");
      // Those beyond the gap must not look for another way round it.
      await full0.kill();
      await until(async () => (await peersOf(node0)).length === 3, { timeoutMs: 60_000 });
      const others = all.filter((node) => node !== full0);
      const without = new Map(
        [...expected].map(([name, peers]) => [name, peers.filter((peer) => peer !== "full0")]),
      );
      await expectQuiet(others, without);
      await Promise.all([full0.start(), node0.kill().then(() => node0.start())]);
      await untilPeersAre(all, expected);
      await untilDeciding(all);
      const height = await node0.height();
      await untilHeight(all, height);
      await auditChain(all, height);
    } finally {
      await network.remove();
    }
  });
});

/** Names of a node's peers, sorted. */
async function peersOf(node: NetworkNode): Promise<string[]> {
  const { peers, n_peers } = await comet<NetInfo>(node, "net_info");
  expect(Number(n_peers)).toBe(peers.length);
  return peers.map(({ node_info }) => node_info.moniker).toSorted();
}

async function untilConnected(
  nodes: readonly NetworkNode[],
  others: readonly NetworkNode[],
): Promise<void> {
  await until(
    async () => {
      await pause(POLL_MS);
      const found = await Promise.all(nodes.map(peersOf));
      return nodes.every((node, index) =>
        others.every((other) => other === node || found[index]?.includes(other.name)),
      );
    },
    { timeoutMs: FOUND_TIMEOUT_MS, what: "the nodes are connected with each other" },
  );
}

async function untilPeersAre(
  nodes: readonly NetworkNode[],
  expected: ReadonlyMap<string, readonly string[]>,
): Promise<void> {
  let found: string[][] = [];
  await until(
    async () => {
      await pause(POLL_MS);
      found = await Promise.all(nodes.map(peersOf));
      return nodes.every(({ name }, index) => String(found[index]) === String(expected.get(name)));
    },
    { timeoutMs: FOUND_TIMEOUT_MS, what: "peers are the persistent ones" },
  ).catch((error: unknown) => {
    const names = nodes.map(({ name }, index) => `${name}: ${String(found[index])}`);
    throw new Error(`${String(error)}; ${names.join("; ")}`);
  });
}

/** Nobody has another peer, at any look. */
async function expectQuiet(
  nodes: readonly NetworkNode[],
  expected: ReadonlyMap<string, readonly string[]>,
): Promise<void> {
  const endMs = performance.now() + QUIET_MS;
  while (performance.now() < endMs) {
    await pause(POLL_MS);
    for (const node of nodes) {
      expect([node.name, await peersOf(node)]).toEqual([node.name, expected.get(node.name)]);
    }
  }
}
