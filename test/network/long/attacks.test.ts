/**
 * Four validators, one of which is attacked in every way that peers have: the chain keeps its pace,
 * the attacked node's thread never stops for long, and its memory falls back.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { setTimeout as pause } from "node:timers/promises";
import type { Hash32 } from "../../../chain/hex.js";
import { parseNodeId } from "../../../node/p2p/node-key.js";
import { until } from "../../helpers/until.js";
import { ATTACKS, runAttack, STALLING, type Target } from "../../helpers/attackers.js";
import { comet, evm } from "../calls.js";
import { auditChain, paceOf } from "../chain-audit.js";
import {
  MOST_STARVED,
  type NetworkNode,
  type RunningNetwork,
  startNetwork,
  untilHeight,
  watchStarvation,
} from "../network.js";
import { startTraffic, untilMined } from "../traffic.js";

const BLOCK_INTERVAL_MS = 2_000;
const TOLERANCE_MS = 200;

/** Length of each attack. */
const ATTACK_MS = 14_000;

/** Longest stop of the attacked node's thread. */
const MOST_PAUSE_MS = 250;

/** What may stay in memory, and how long it may take to fall. */
const MOST_KEPT_BYTES = 100_000_000;
const FALL_MS = 60_000;

/** So much is asked for at once that answers are dear. */
const TRANSFERS_PER_SECOND = 400;
const TRAFFIC_MS = 16_000;

/** How often heights and metrics are looked at. */
const LOOK_MS = 500;

/** A node that starts among liars takes part within this; without them it takes some seconds. */
const START_MS = 40_000;

describe("a validator under attack", () => {
  let network: RunningNetwork;
  let attacked: NetworkNode;
  let target: Target;
  let height = 1;
  let looking: NodeJS.Timeout;
  let pauseMs = 0;
  let memoryBytes = 0;

  beforeAll(async () => {
    network = await startNetwork({ validators: 4, blockIntervalMs: BLOCK_INTERVAL_MS });
    const { validators } = network;
    const [first] = validators;
    if (first === undefined) throw new Error("no validator");
    attacked = first;
    const traffic = await startTraffic(network, validators, TRANSFERS_PER_SECOND);
    await pause(TRAFFIC_MS);
    await untilMined(validators, (await traffic.stop()).accepted);
    const { node_info } = await comet<{ node_info: { id: string; network: string } }>(
      attacked,
      "status",
    );
    const genesis = await evm<{ hash: Hash32 }>(attacked, "eth_getBlockByNumber", ["0x0", false]);
    target = {
      chainId: node_info.network,
      genesisHash: genesis.hash,
      nodeId: parseNodeId(node_info.id),
      port: attacked.ports.p2p,
      height: () => height + 1,
    };
    looking = setInterval(() => void look(), LOOK_MS);
  });
  afterAll(async () => {
    clearInterval(looking);
    await network?.remove();
  });

  /** The longest pause is of the time since it was last asked for. */
  async function look(): Promise<void> {
    const other = network.validators[1];
    if (other !== undefined) height = Math.max(height, await other.heightIfAnswered());
    const metrics = await metricsOf(attacked).catch(() => undefined);
    if (metrics === undefined) return;
    pauseMs = Math.max(pauseMs, metrics.pauseMs);
    memoryBytes = metrics.memoryBytes;
  }

  it.each(ATTACKS)("by $name: blocks, thread and memory stay what they were", async (attack) => {
    await pause(2 * LOOK_MS);
    const [from, beforeBytes] = [height, memoryBytes];
    pauseMs = 0;
    const starvation = watchStarvation(network.validators);
    const ending = new AbortController();
    const attacking = runAttack(attack, target, ending.signal);
    await pause(ATTACK_MS);
    const starved = starvation();
    const peakBytes = memoryBytes;
    const longestMs = pauseMs;
    const to = height;
    ending.abort(new Error("the attack is over"));
    const keys = await attacking;
    // The attacked one may have the newest block a moment later.
    await untilHeight(network.validators, to);
    const blocks = await auditChain(network.validators, to);
    const pace = paceOf(blocks.slice(from - 1, to));
    let isFallen = false;
    const endMs = performance.now() + FALL_MS;
    while (!isFallen && performance.now() < endMs) {
      await pause(LOOK_MS);
      isFallen = memoryBytes - beforeBytes < MOST_KEPT_BYTES;
    }
    const [before, peak, after] = [beforeBytes, peakBytes, memoryBytes].map(inMegabytes);
    console.log(
      `${attack.name}: blocks every ${Math.round(pace.meanMs)} ms, longest pause ` +
        `${Math.round(longestMs)} ms, memory ${before} -> ${peak} -> ${after} MB, ` +
        `${keys} keys used; without a processor ${Math.round(starved * 100)} % of the time`,
    );
    expect(isFallen).toBe(true);
    expect(to - from).toBeGreaterThan(2);
    // A machine that is busy with other things shows nothing about what follows.
    if (starved > MOST_STARVED) return;
    expect(Math.abs(pace.meanMs - BLOCK_INTERVAL_MS)).toBeLessThanOrEqual(TOLERANCE_MS);
    expect(longestMs).toBeLessThanOrEqual(MOST_PAUSE_MS);
  });

  it("that starts anew among liars about the height takes part soon", async () => {
    await attacked.stop();
    const ending = new AbortController();
    const attacking = runAttack(STALLING, target, ending.signal);
    try {
      await attacked.start();
      const startMs = performance.now();
      await until(async () => !(await attacked.status()).sync_info.catching_up, {
        timeoutMs: 2 * START_MS,
        what: "the validator takes part",
      });
      const tookMs = performance.now() - startMs;
      console.log(`${STALLING.name}: takes part after ${Math.round(tookMs)} ms`);
      expect(tookMs).toBeLessThan(START_MS);
      await untilHeight(network.validators, height + 2);
    } finally {
      ending.abort(new Error("the attack is over"));
      await attacking;
    }
  });

  it("has nothing to complain about, and neither have the others", async () => {
    for (const { name, faults } of network.validators) expect([name, faults]).toEqual([name, []]);
    expect((await comet<{ n_peers: string }>(attacked, "net_info")).n_peers).not.toBe("0");
  });
});

async function metricsOf(node: NetworkNode): Promise<{ pauseMs: number; memoryBytes: number }> {
  const signal = AbortSignal.timeout(5_000);
  const response = await fetch(`http://127.0.0.1:${node.ports.metrics}/metrics`, { signal });
  const text = await response.text();
  const value = (name: string) => {
    const match = new RegExp(`^${name} ([0-9.e+-]+)$`, "m").exec(text);
    if (match === null) throw new Error(`no metric ${name}`);
    return Number(match[1]);
  };
  return {
    pauseMs: value("nodejs_eventloop_lag_max_seconds") * 1_000,
    memoryBytes: value("process_resident_memory_bytes"),
  };
}

function inMegabytes(bytes: number): number {
  return Math.round(bytes / 1_000_000);
}
