/** Nodes that come back: with an empty `data/`, or after hundreds of blocks; how fast is printed. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import fs from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { homePaths } from "../../../cli/home/home.js";
import { until } from "../../helpers/until.js";
import { comet } from "../calls.js";
import { auditChain, compareMined } from "../chain-audit.js";
import { type NetworkNode, type RunningNetwork, startNetwork, untilHeight } from "../network.js";
import { Ways } from "../proxy.js";
import { startTraffic, untilMined } from "../traffic.js";

const POLL_MS = 50;

/** Blocks that a node misses. */
const MISSED = 300;

/** On a busy machine the blocks themselves take their time. */
const MISSED_TIMEOUT_MS = 400_000;

const CAUGHT_UP_TIMEOUT_MS = 180_000;

describe("a node that comes back", () => {
  const ways = new Ways();
  let network: RunningNetwork;
  let validators: readonly NetworkNode[];
  let away: NetworkNode;
  let full: NetworkNode;

  beforeAll(async () => {
    network = await startNetwork({
      validators: 4,
      fullNodes: 1,
      blockIntervalMs: 200,
      hasShortTimeouts: true,
      peerPort: (link) => ways.open(link),
    });
    validators = network.validators;
    const [last, first] = [validators.at(-1), network.fullNodes.at(0)];
    if (last === undefined || first === undefined) throw new Error("no nodes");
    [away, full] = [last, first];
  });
  afterAll(async () => {
    ways.close();
    await network?.remove();
  });
  afterEach(() => {
    for (const { name, faults } of [...validators, full]) {
      expect([name, faults]).toEqual([name, []]);
    }
  });

  it("syncs again after its data was deleted", async () => {
    await full.start();
    await untilHeight([full], 20);
    await full.stop();
    fs.rmSync(homePaths(full.home).data, { recursive: true });
    await full.start();
    console.log(`full node without data: ${await caughtUp(full, 0)}`);
    const height = await full.height();
    await auditChain([head(), full], height);
  });

  it("catches up after it was down for 300 blocks", async () => {
    const from = await away.height();
    await away.stop();
    const accepted = await missBlocks(from);
    await away.start();
    console.log(`down: ${await caughtUp(away, from)}`);
    await expectOneOfUs(accepted);
  }, 900_000);

  it("catches up after it was frozen for 300 blocks", async () => {
    const from = await away.height();
    away.freeze();
    const accepted = await missBlocks(from);
    away.thaw();
    console.log(`frozen: ${await caughtUp(away, from)}`);
    await expectOneOfUs(accepted);
  }, 900_000);

  it("catches up after it was cut off for 300 blocks", async () => {
    const from = await away.height();
    ways.split([0, 1, 2, 4], [3]);
    const accepted = await missBlocks(from);
    ways.heal();
    console.log(`cut off: ${await caughtUp(away, from)}`);
    await expectOneOfUs(accepted);
  }, 900_000);

  function head(): NetworkNode {
    const [first] = validators;
    if (first === undefined) throw new Error("no validator");
    return first;
  }

  /** The others decide as many blocks, with transfers in them. @returns the transfers' hashes */
  async function missBlocks(from: number): Promise<readonly string[]> {
    const traffic = await startTraffic(network, validators.slice(0, 3), 50);
    await untilHeight([head()], from + MISSED, MISSED_TIMEOUT_MS);
    return (await traffic.stop()).accepted;
  }

  /** Resolves with its speed when a node has what the others have. */
  async function caughtUp(node: NetworkNode, from: number): Promise<string> {
    const startMs = performance.now();
    let height = from;
    await until(
      async () => {
        await pause(POLL_MS);
        const target = await head().heightIfAnswered();
        height = await node.heightIfAnswered();
        return target >= 0 && height >= target - 1 && !(await node.status()).sync_info.catching_up;
      },
      { timeoutMs: CAUGHT_UP_TIMEOUT_MS, what: `${node.name} has caught up` },
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}; ${from} to ${height}\n${node.lastWords()}`);
    });
    const seconds = (performance.now() - startMs) / 1_000;
    const rate = ((height - from) / seconds).toFixed(0);
    return `${height - from} blocks in ${seconds.toFixed(1)} s, ${rate} blocks/s`;
  }

  /** It signs again, and its chain is that of the others. */
  async function expectOneOfUs(accepted: readonly string[]): Promise<void> {
    await untilMined([head(), away], accepted);
    const height = await away.height();
    await untilHeight([head()], height);
    const blocks = await auditChain([head(), away], height);
    expect(compareMined(blocks, accepted)).toEqual({ lost: [], repeated: [] });
    const { address } = (await away.status()).validator_info;
    await until(async () => (await signersOf(head(), await head().height())).includes(address), {
      timeoutMs: 60_000,
      what: "it signs blocks again",
    });
  }
});

async function signersOf(node: NetworkNode, height: number): Promise<readonly string[]> {
  const { signed_header } = await comet<{
    readonly signed_header: {
      readonly commit: {
        readonly signatures: readonly {
          readonly block_id_flag: number;
          readonly validator_address: string;
        }[];
      };
    };
  }>(node, `commit?height=${height}`);
  return signed_header.commit.signatures.flatMap(({ block_id_flag, validator_address }) =>
    block_id_flag === 2 ? [validator_address] : [],
  );
}
