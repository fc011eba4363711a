/**
 * Peers that attack one node: real ones, with keys of their own, that speak the protocol as far as
 * it serves them. Whoever is let go comes back under a new key at once.
 */
import { randomBytes, randomInt } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { privateKeyToAddress } from "../../chain/signing/account-key.js";
import { ProtoReader, ProtoWriter } from "../../chain/protobuf/wire.js";
import { VOTE_TYPE } from "../../chain/consensus/vote.js";
import type { Hash32, Height } from "../../chain/hex.js";
import { signLegacy } from "../../chain/transaction.js";
import type { RoundStatus } from "../../node/consensus/consensus-ports.js";
import { STEP } from "../../node/consensus/machine/consensus-state.js";
import { blockSource } from "../../node/p2p/blocks/block-protocol.js";
import { Host } from "../../node/p2p/host.js";
import { type NodeId, nodeKeyOf } from "../../node/p2p/node-key.js";
import { encodeConsensusMessage, encodeTransactions } from "../../node/p2p/peers/peer-codec.js";
import type { PeerLink } from "../../node/p2p/peers/peer-link.js";
import { type PeerSession, PeerSessions } from "../../node/p2p/peers/peer-sessions.js";
import { systemClock as clock } from "../../runtime/process/clock.js";
import { createLogger } from "../../runtime/process/logger.js";

/** Who is attacked. */
export interface Target {
  readonly chainId: string;
  readonly genesisHash: Hash32;
  readonly nodeId: NodeId;
  readonly port: number;
  /** The height that it is deciding, as of a moment ago. */
  readonly height: () => Height;
}

/** One identity that is connected. */
interface Attacker {
  readonly host: Host;
  readonly link: PeerLink;
  readonly session: PeerSession;
  readonly target: Target;
  /** Fires when it is let go, or the attack is over. */
  readonly signal: AbortSignal;
}

/** What an identity does as long as it is connected. */
type Act = (attacker: Attacker) => Promise<void>;

/** One kind of attack. */
export interface Attack {
  readonly name: string;
  readonly identities: number;
  readonly act: Act;
}

const log = createLogger({ component: "attacker", level: "silent" });
const BLOCK_PROTOCOL = "/causeway/blocks/1";

/** An attacker keeps so much on its way that the line is never idle. */
const IN_FLIGHT_BYTES = 2_000_000;
const BREATH_MS = 2;

/** Runs an attack until the signal fires. @returns how many keys it used up */
export async function runAttack(
  { identities, act }: Attack,
  target: Target,
  signal: AbortSignal,
): Promise<number> {
  let keys = 0;
  const comeBack = async () => {
    while (!signal.aborted) {
      keys++;
      await liveOnce(target, act, signal).catch(() => undefined);
      await pause(100);
    }
  };
  await Promise.all(Array.from({ length: identities }, comeBack));
  return keys;
}

async function liveOnce(target: Target, act: Act, signal: AbortSignal): Promise<void> {
  const { chainId: network, genesisHash } = target;
  const host = await Host.start({
    key: nodeKeyOf(randomBytes(32)),
    listen: undefined,
    maxInboundPeers: 0,
    maxOutboundPeers: 1,
    // Whatever the node does is fine with it.
    reservedIds: new Set([target.nodeId]),
    topics: Object.values(topicsOf(target)),
    clock,
    log,
  });
  try {
    const texts = { moniker: "guest", version: "1", listenAddress: "", rpcAddress: "" };
    const sessions = await PeerSessions.start({
      host,
      hello: { network, genesisHash, ...texts },
      clock,
      log,
    });
    const address = { nodeId: target.nodeId, host: "127.0.0.1", port: target.port };
    const link = await host.dial(address, { signal });
    const session = await sessions.whenReady(link, signal);
    const living = AbortSignal.any([signal, link.signal]);
    const pings = setInterval(() => session.send({ type: "ping" }), 1_000);
    try {
      await act({ host, link, session, target, signal: living });
      await ended(living);
    } finally {
      clearInterval(pings);
    }
  } finally {
    await host.stop();
  }
}

function ended(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

function topicsOf({ genesisHash }: Target) {
  const prefix = `/causeway/${genesisHash.slice(2, 18)}`;
  return { consensus: `${prefix}/consensus/1`, transactions: `${prefix}/transactions/1` };
}

/** Sends frames without end, as fast as the node takes them. */
async function flood({ session, signal }: Attacker, next: () => Uint8Array): Promise<void> {
  while (!signal.aborted) {
    for (let count = 0; count < 20 && session.unsentBytes < IN_FLIGHT_BYTES; count++) {
      session.send({ type: "consensus", message: next() });
    }
    await pause(BREATH_MS);
  }
}

function statusOf(height: Height, bits: readonly boolean[], rounds = 0): RoundStatus {
  return {
    height,
    round: 0,
    step: STEP.prevote,
    hasProposal: false,
    parts: undefined,
    prevotes: bits,
    precommits: bits,
    earlier: Array.from({ length: rounds }, (_, round) => ({
      round,
      prevotes: bits,
      precommits: bits,
    })),
  };
}

const encodedStatus = (status: RoundStatus) => encodeConsensusMessage({ type: "status", status });

/** Statuses of 164 KB: 132 bit arrays of 10,000. */
const hugeStatuses: Act = async (attacker) => {
  const bits = Array.from({ length: 10_000 }, () => false);
  const message = encodedStatus(statusOf(attacker.target.height(), bits, 64));
  await flood(attacker, () => message);
};

/** Statuses that any node might send, without end. */
const smallStatuses: Act = async (attacker) => {
  const bits = [true, false, true, false];
  await flood(attacker, () => encodedStatus(statusOf(attacker.target.height(), bits, 2)));
};

/** Statuses of old heights: each asks for a whole block in parts. */
const oldHeights: Act = async (attacker) => {
  while (!attacker.signal.aborted) {
    const height = randomInt(1, Math.max(2, attacker.target.height() - 3));
    const message = encodedStatus(statusOf(height, [false, false, false, false]));
    attacker.session.send({ type: "consensus", message });
    await pause(10);
  }
};

/** Votes of nobody for the next height, and transactions without coins. */
const junk: Act = async (attacker) => {
  const { host, target } = attacker;
  const transactions = encodeTransactions(poorTransactions());
  const publishing = setInterval(() => {
    host.gossip.publish(topicsOf(target).transactions, transactions).catch(() => undefined);
  }, 20);
  try {
    await flood(attacker, () => {
      const vote = {
        type: VOTE_TYPE.prevote,
        height: target.height() + 1,
        round: 0,
        blockId: undefined,
        timeNs: BigInt(Date.now()) * 1_000_000n,
        validatorAddress: privateKeyToAddress(KEY),
        validatorIndex: randomInt(4),
        signature: randomBytes(64),
      };
      return encodeConsensusMessage({ type: "vote", vote });
    });
  } finally {
    clearInterval(publishing);
  }
};

const KEY = new Uint8Array(32).fill(11);

function poorTransactions(): Uint8Array[] {
  return Array.from({ length: 200 }, () =>
    signLegacy(
      {
        chainId: 6940n,
        nonce: 0n,
        gasPriceAtoken: 10n ** 12n,
        gasLimit: 21_000n,
        to: privateKeyToAddress(KEY),
        valueAtoken: 1n,
        data: new Uint8Array(0),
      },
      randomBytes(32),
    ),
  );
}

/** Eight requests for old blocks at once, again and again: forty bytes each. */
const hammer: Act = async ({ link, target, signal }) => {
  const source = blockSource(link);
  const ask = async () => {
    while (!signal.aborted) {
      const from = randomInt(1, Math.max(2, target.height() - 1));
      const options = { signal, onBlock: () => undefined };
      await source.blocks({ from, count: 64 }, options).catch(() => pause(5));
    }
  };
  await Promise.all(Array.from({ length: 8 }, ask));
};

/** Streams that are opened and given up, hundreds in a second. */
const streams: Act = async ({ link, signal }) => {
  while (!signal.aborted) {
    const opening = Array.from({ length: 8 }, async () => {
      const options = { maxMessageBytes: 1_000, signal };
      const channel = await link.open(BLOCK_PROTOCOL, options).catch(() => undefined);
      channel?.abort(new Error("changed my mind"));
    });
    await Promise.all(opening);
    await pause(1);
  }
};

/** Claims a height far ahead, and answers who asks for a proof with 24 MB of empty elements. */
const bombs: Act = async ({ host, session, target, signal }) => {
  const bomb = Buffer.alloc(24_000_000, Buffer.from("0a00", "hex"));
  await host.handle({
    protocol: BLOCK_PROTOCOL,
    maxMessageBytes: 64,
    maxInboundStreams: 8,
    async serve(_link, channel) {
      const request = new ProtoReader((await channel.read(signal)) ?? new Uint8Array(0), [1, 2]);
      const isRange = request.count(2) === 0;
      const top = target.height() + 1_000;
      const range = new ProtoWriter().integer(1, 2).integer(2, top).finish();
      await channel.write(isRange ? range : bomb, signal);
      await channel.close(signal);
    },
  });
  const bits = [false, false, false, false];
  while (!signal.aborted) {
    const message = encodedStatus(statusOf(target.height() + 1_000, bits));
    session.send({ type: "consensus", message });
    await pause(300);
  }
};

/** Claims one block more than there is, and gives nothing. */
const stalling: Act = async ({ host, target, signal }) => {
  await host.handle({
    protocol: BLOCK_PROTOCOL,
    maxMessageBytes: 64,
    maxInboundStreams: 8,
    async serve(_link, channel) {
      const request = new ProtoReader((await channel.read(signal)) ?? new Uint8Array(0), [1, 2]);
      if (request.count(2) > 0) return ended(signal);
      const top = target.height() + 1;
      await channel.write(
        new ProtoWriter()
          .integer(1, 2)
          .integer(2, top + 1)
          .finish(),
        signal,
      );
      await channel.close(signal);
    },
  });
};

/** Takes a place and says what keeps it. */
const idle: Act = () => Promise.resolve();

/** Attacks on a node that decides. */
export const ATTACKS: readonly Attack[] = [
  { name: "statuses of 164 KB", identities: 2, act: hugeStatuses },
  { name: "statuses without end", identities: 4, act: smallStatuses },
  { name: "requests for old blocks", identities: 6, act: hammer },
  { name: "statuses of old heights", identities: 4, act: oldHeights },
  { name: "votes and transactions of nobody", identities: 4, act: junk },
  { name: "streams that are given up", identities: 4, act: streams },
  { name: "24 MB of empty elements", identities: 4, act: bombs },
  { name: "all places taken", identities: 60, act: idle },
];

/** The attack on a node that starts. */
export const STALLING: Attack = { name: "claims that are not kept", identities: 4, act: stalling };
