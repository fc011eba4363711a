/** Whole validators over the real network in this process, as a node runs them. */
import { randomBytes } from "node:crypto";
import { expect } from "@jest/globals";
import type { Genesis } from "../../../node/settings/genesis.js";
import type { RoundStatus } from "../../../node/consensus/consensus-ports.js";
import { runConsensus } from "../../../node/compose/network.js";
import { Network } from "../../../node/p2p/network.js";
import { type NodeKey, nodeKeyOf } from "../../../node/p2p/node-key.js";
import type { KnownPeerAddress } from "../../../node/p2p/peers/peer-address.js";
import { systemClock as clock } from "../../../runtime/process/clock.js";
import { freePort } from "../../helpers/ports.js";
import { until } from "../../helpers/until.js";
import { ValidatorNode, type ValidatorNodeOptions } from "../../helpers/chains/validator-node.js";
import { hashOf } from "./fakes.js";
import { testLog as log } from "./support.js";

/** A running validator or full node. */
export interface Member {
  readonly node: ValidatorNode;
  readonly network: Network;
  /** What would have ended the process. */
  readonly faults: readonly unknown[];
  /** How often it went from following to taking part. */
  readonly entries: () => number;
  /** Where its consensus was each time that it began to follow. */
  readonly follows: readonly RoundStatus[];
}

/** Where a member is found. */
export interface Place {
  readonly key: NodeKey;
  readonly address: KnownPeerAddress;
}

const running = new Set<Member>();
const { signal } = new AbortController();

/** A new identity on a free port. */
export async function place(): Promise<Place> {
  const key = nodeKeyOf(randomBytes(32));
  return { key, address: { nodeId: key.nodeId, host: "127.0.0.1", port: await freePort() } };
}

/** Starts a member; it follows, then takes part. `leaveAll` ends it. */
export async function join(
  genesis: Genesis,
  { key, address }: Place,
  options: {
    readonly seed?: Uint8Array | undefined;
    readonly home?: string;
    readonly persistentPeers: readonly KnownPeerAddress[];
    readonly doubleSignCheckBlocks?: number;
    readonly watch?: NonNullable<ValidatorNodeOptions["watch"]>;
  },
): Promise<Member> {
  const { seed, persistentPeers, ...rest } = options;
  const node = await ValidatorNode.open({ genesis, seed, ...rest });
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
      unconditionalPeerIds: [],
      privatePeerIds: [],
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
  let entries = 0;
  const attach = network.attach.bind(network);
  network.attach = (inbox) => {
    entries++;
    attach(inbox);
  };
  const follows: RoundStatus[] = [];
  const catchUp = network.catchUp.bind(network);
  network.catchUp = (how) => {
    follows.push(node.consensus.status());
    return catchUp(how);
  };
  node.run((inner) =>
    runConsensus({
      network,
      consensus: node.consensus,
      log,
      signal: inner,
      halt: (reason) => faults.push(reason),
      fatal: (error) => faults.push(error),
    }),
  );
  const member = { node, network, faults, entries: () => entries, follows };
  running.add(member);
  return member;
}

/** Stops a member. @returns its home, which is kept on demand */
export async function leave(member: Member, keep = false): Promise<string> {
  running.delete(member);
  await member.network.stop();
  await member.node.stop({ keep });
  return member.node.home;
}

/** Stops all members; none may have had a fault. */
export async function leaveAll(): Promise<void> {
  const members = [...running];
  await Promise.all(members.map((member) => leave(member)));
  expect(members.flatMap(({ faults }) => faults)).toEqual([]);
}

/** Awaits a height on all of them; rejects when one halted. */
export async function reach(members: readonly Member[], height: number): Promise<void> {
  await until(
    () => {
      expect(members.flatMap(({ node }) => node.halts)).toEqual([]);
      return members.every(({ node }) => node.height >= height);
    },
    { timeoutMs: 60_000, what: `height ${height}` },
  );
}
