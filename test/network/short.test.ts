/** Four validators as four processes under load, and a node that joins them. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import fs from "node:fs";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { until } from "../helpers/until.js";
import { comet } from "./calls.js";
import { auditChain, compareMined, paceOf, paceText, quantile } from "./chain-audit.js";
import { type RunningNetwork, startNetwork, untilHeight, watchStarvation } from "./network.js";
import { startTraffic, untilMined } from "./traffic.js";

const BLOCK_INTERVAL_MS = 200;

/** Blocks over which the interval is judged; where they take longer than the span, fewer do. */
const BLOCKS = 100;
const FEWEST_BLOCKS = 10;
const SPAN_MS = 25_000;

/** A machine that is busy with other things has all this time. */
const PATIENCE_MS = 300_000;

/** Pause between two looks at the head. */
const POLL_MS = 150;

const TRANSFERS_PER_SECOND = 200;

describe("four validators and a node that joins", () => {
  let network: RunningNetwork;

  beforeAll(async () => {
    network = await startNetwork({
      validators: 4,
      fullNodes: 2,
      blockIntervalMs: BLOCK_INTERVAL_MS,
      settings(node, [seed]): Record<string, string> {
        if (node.name !== "full1" || seed === undefined) return {};
        const address = seed.peerAddress.slice(seed.peerAddress.indexOf("@") + 1);
        return { persistent_peers: '""', seeds: `"${address}"`, pex: "true" };
      },
    });
  });
  afterAll(async () => {
    await network?.remove();
  });

  it("decide, none too soon, agree at every height, and mine each transfer once", async () => {
    const { validators } = network;
    const [first] = validators;
    if (first === undefined) throw new Error("no validator");
    const traffic = await startTraffic(network, validators, TRANSFERS_PER_SECOND);
    const from = await first.height();
    const starvation = watchStarvation(validators);
    const startMs = performance.now();
    let to = from;
    await until(
      async () => {
        await pause(POLL_MS);
        to = Math.max(to, await first.heightIfAnswered());
        const isLong = performance.now() - startMs > SPAN_MS;
        return to >= from + (isLong ? FEWEST_BLOCKS : BLOCKS);
      },
      { timeoutMs: PATIENCE_MS, what: `${FEWEST_BLOCKS} blocks are decided` },
    );
    const starved = starvation();
    const report = await traffic.stop();
    await untilMined(validators, report.accepted);
    const height = Math.min(...(await Promise.all(validators.map((node) => node.height()))));
    const blocks = await auditChain(validators, height);
    expect(compareMined(blocks, report.accepted)).toEqual({ lost: [], repeated: [] });
    const pace = paceOf(blocks.slice(from - 1, to));
    const [p50, p99] = [0.5, 0.99].map((part) => Math.round(quantile(report.receiptMs, part)));
    console.log(
      `${to - from} ${paceText(pace)}; ${report.accepted.length} transfers, ` +
        `${report.perSecond}/s; receipts p50 ${p50} ms, p99 ${p99} ms; ` +
        `without a processor ${Math.round(starved * 100)} % of the time`,
    );
    // How much longer blocks take says something of the machine: the long form judges it.
    expect(pace.meanMs).toBeGreaterThanOrEqual(BLOCK_INTERVAL_MS * 0.9);
    for (const node of validators) {
      const peersOf = async () => (await comet<{ n_peers: string }>(node, "net_info")).n_peers;
      // A machine that stood still for a while has made them lose one another, or fall behind.
      await until(
        async () => {
          await pause(POLL_MS);
          return !(await node.status()).sync_info.catching_up && (await peersOf()) === "3";
        },
        { timeoutMs: PATIENCE_MS, what: `${node.name} takes part among all others` },
      );
      expect((await node.status()).validator_info.voting_power).toBe("100");
    }
  });

  it("are joined from genesis by a node that is killed on the way", async () => {
    const [joining] = network.fullNodes;
    const [first] = network.validators;
    if (joining === undefined || first === undefined) throw new Error("no node");
    const seen = new Set<boolean>();
    const look = async () => {
      const { catching_up, latest_block_height } = (await joining.status()).sync_info;
      seen.add(catching_up);
      return { isCatchingUp: catching_up, height: Number(latest_block_height) };
    };
    await joining.start();
    await until(async () => (await look()).height > 5, { timeoutMs: PATIENCE_MS });
    const killed = await look();
    await joining.kill();
    await joining.start();
    const target = Math.max(1, await first.heightIfAnswered());
    await until(
      async () => {
        const { isCatchingUp, height } = await look();
        // Whoever says that it has caught up has what was there before it was asked.
        if (!isCatchingUp) expect(height).toBeGreaterThanOrEqual(target - 1);
        return !isCatchingUp;
      },
      { timeoutMs: PATIENCE_MS, what: "the node has caught up" },
    );
    await untilHeight([joining, first], target + 3);
    await auditChain([first, joining], target + 3);
    console.log(`killed at ${killed.height} of ${target}, catching up: ${killed.isCatchingUp}`);
    expect([...seen]).toContain(true);
    expect(Number((await joining.status()).validator_info.voting_power)).toBe(0);
  });

  it("are joined by a node that knows nothing but the address of one of them", async () => {
    const [, stranger] = network.fullNodes;
    const [first] = network.validators;
    if (stranger === undefined || first === undefined) throw new Error("no node");
    await stranger.start();
    const target = Math.max(1, await first.heightIfAnswered());
    await untilHeight([stranger], target + 3);
    await auditChain([first, stranger], target);
    const { peers } = await comet<{ peers: { node_info: { moniker: string } }[] }>(
      stranger,
      "net_info",
    );
    const monikers = peers.map(({ node_info }) => node_info.moniker);
    expect(monikers).toEqual(expect.arrayContaining(["node1", "node2", "node3"]));
    expect([stranger.name, stranger.faults]).toEqual([stranger.name, []]);
  });

  it("end in time, with nothing to complain about", async () => {
    await Promise.all([...network.validators, ...network.fullNodes].map((node) => node.stop()));
    for (const { name, faults } of network.validators) {
      expect([name, faults]).toEqual([name, []]);
    }
    for (const { home } of network.validators) {
      expect(fs.readdirSync(path.join(home, "data")).toSorted()).toContain("chain");
    }
  });
});
