/** Real validators over the real network: they decide, lose one, take it back, and a node joins. */
import { afterEach, describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { randomBytes } from "node:crypto";
import { parseHexBytes } from "../../../chain/hex.js";
import type { Genesis } from "../../../node/genesis.js";
import { Network } from "../../../node/p2p/network.js";
import { type NodeKey, nodeKeyOf } from "../../../node/p2p/node-key.js";
import type { KnownPeerAddress } from "../../../node/p2p/peer-address.js";
import { systemClock as clock } from "../../../runtime/clock.js";
import { freePort } from "../../helpers/ports.js";
import { until } from "../../helpers/until.js";
import { validatorGenesis, ValidatorNode } from "../../helpers/validator-node.js";
import { hashOf } from "./fakes.js";
import { testLog as log } from "./support.js";

interface Member {
  readonly node: ValidatorNode;
  readonly network: Network;
  /** How long catching up took. */
  readonly caughtUpMs: number;
}

interface Place {
  readonly key: NodeKey;
  readonly address: KnownPeerAddress;
}

const faucet = new Wallet(`0x${"11".repeat(32)}`);
const running = new Set<Member>();
const { signal } = new AbortController();

afterEach(async () => {
  await Promise.all([...running].map((member) => leave(member)));
});

async function place(): Promise<Place> {
  const key = nodeKeyOf(randomBytes(32));
  return { key, address: { nodeId: key.nodeId, host: "127.0.0.1", port: await freePort() } };
}

async function join(
  genesis: Genesis,
  { key, address }: Place,
  options: {
    readonly seed?: Uint8Array | undefined;
    readonly home?: string;
    readonly persistentPeers: readonly KnownPeerAddress[];
  },
): Promise<Member> {
  const { seed, home, persistentPeers } = options;
  const node = await ValidatorNode.open({ genesis, seed, ...(home === undefined ? {} : { home }) });
  const faults: unknown[] = [];
  const network = await Network.start(
    {
      key,
      listen: { host: address.host, port: address.port },
      externalAddress: "",
      persistentPeers,
      seeds: [],
      pex: false,
      seedMode: false,
      maxInboundPeers: 40,
      maxOutboundPeers: 10,
      addressBookFile: undefined,
      moniker: "validator",
      version: "1",
      rpcAddress: "",
      chainId: genesis.cosmosChainId,
      genesisHash: hashOf("genesis"),
    },
    {
      blocks: node.consensus,
      pool: node.pool,
      clock,
      log,
      random: Math.random,
      onFault: (error) => faults.push(error),
    },
    signal,
  );
  node.bus.on("pendingTransactions", (transactions) => network.onAdmitted(transactions));
  const startMs = performance.now();
  await network.catchUp({ signal, mayBeFirst: seed !== undefined });
  const caughtUpMs = performance.now() - startMs;
  network.attach(node.consensus);
  node.start((message) => network.broadcast.broadcast(message));
  const member = { node, network, caughtUpMs };
  running.add(member);
  return member;
}

async function leave(member: Member, keep = false): Promise<string> {
  running.delete(member);
  await member.network.stop();
  await member.node.stop({ keep });
  return member.node.home;
}

async function reach(members: readonly Member[], height: number): Promise<void> {
  await until(
    () => {
      expect(members.flatMap(({ node }) => node.halts)).toEqual([]);
      return members.every(({ node }) => node.height >= height);
    },
    { timeoutMs: 60_000, what: `height ${height}` },
  );
}

describe("validators over the network", () => {
  it("decide together, take one back, let a node join and mine what it hears", async () => {
    const { genesis, seeds } = validatorGenesis(4, {
      faucet: faucet.address,
      blockIntervalMs: 200,
    });
    const places = await Promise.all(seeds.map(() => place()));
    const persistentPeers = places.map(({ address }) => address);
    const members = await Promise.all(
      places.map((one, index) => join(genesis, one, { seed: seeds[index], persistentPeers })),
    );
    await reach(members, 5);
    const [first, second, third, fourth] = members;
    if (!first || !second || !third || !fourth) throw new Error("four members");

    const home = await leave(fourth, true);
    const others = [first, second, third];
    await reach(others, first.node.height + 10);
    const fourthPlace = places[3] ?? (await place());
    const back = await join(genesis, fourthPlace, { seed: seeds[3], home, persistentPeers });
    await reach([...others, back], first.node.height + 5);

    const follower = await join(genesis, await place(), { persistentPeers });
    await reach([follower], first.node.height);
    const raw = await faucet.signTransaction({
      type: 0,
      chainId: genesis.evmChainId,
      nonce: 0,
      gasPrice: 25_000_000n,
      gasLimit: 21_000n,
      to: `0x${"77".repeat(20)}`,
      value: 5n,
    });
    const [hash] = await follower.node.pool.submit([parseHexBytes(raw)]);
    const everybody = [...others, back, follower];
    await until(() => everybody.every(({ node }) => node.view.locate(hash as never)), {
      timeoutMs: 20_000,
      what: "the transaction is mined everywhere",
    });
    const height = Math.min(...everybody.map(({ node }) => node.height));
    const hashes = everybody.map(({ node }) => node.view.block(height)?.block.hash);
    expect(new Set(hashes).size).toBe(1);
    expect(hashes[0]).toBeDefined();
  });
});
