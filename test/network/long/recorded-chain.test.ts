/**
 * A chain of mixed transactions, made on our own engine, is executed a second time by a node that follows it
 * with @ethereumjs/evm: each block must come to the root that the next one names.
 */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { setTimeout as pause } from "node:timers/promises";
import { hexToBytes } from "../../../chain/hex.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import { until } from "../../helpers/until.js";
import { evmBatch } from "../calls.js";
import { type AuditedBlock, auditChain, compareMined } from "../chain-audit.js";
import { type Kind, MixedLoad } from "../mixed-load.js";
import { type NetworkNode, type RunningNetwork, startNetwork } from "../network.js";
import { submitAll, untilMined } from "../traffic.js";

const COUNT = Number(process.env["CAUSEWAY_RECORDED"] ?? 10_000);
const SEED = Number(process.env["CAUSEWAY_TEST_SEED"] ?? 1);

/** Transactions that are sent before those in front of them are mined. */
const ROUND = 1_000;

const POLL_MS = 500;

/** The other engine is some ten times slower. */
const TIMEOUT_MS = 600_000 + 30 * COUNT;

let network: RunningNetwork;
let author: NetworkNode;
let follower: NetworkNode;

beforeAll(async () => {
  network = await startNetwork({ validators: 1, fullNodes: 1, blockIntervalMs: 2_000 });
  const [validator, full] = [network.validators.at(0), network.fullNodes.at(0)];
  if (validator === undefined || full === undefined) throw new Error("no nodes");
  [author, follower] = [validator, full];
});

afterAll(() => network?.remove());

it(
  `${COUNT} mixed transactions come to the same roots on both engines`,
  async () => {
    console.log(
      `recorded chain: seed ${SEED}, ${COUNT} transactions (CAUSEWAY_TEST_SEED, CAUSEWAY_RECORDED)`,
    );
    const { hashes, kinds } = await record();
    const height = await author.height();
    const startMs = performance.now();
    await follower.start("--evm", "ethereumjs");
    await until(
      async () => {
        await pause(POLL_MS);
        // What it says of a block that comes to another root is the answer.
        if (follower.faults.length > 0) throw new Error("it has found fault");
        return (await follower.heightIfAnswered()) >= height;
      },
      { timeoutMs: TIMEOUT_MS, what: `the other engine is at ${height}` },
    ).catch(async (error: unknown) => {
      const at = await follower.heightIfAnswered().catch(() => "no height");
      throw new Error(`${String(error)}; it is at ${at}:\n${follower.lastWords()}`);
    });
    const seconds = Math.round((performance.now() - startMs) / 1_000);
    const blocks = await auditChain([author, follower], height);
    expect(compareMined(blocks, hashes)).toEqual({ lost: [], repeated: [] });
    const failed = await countFailed(blocks);
    const mix = [...kinds].map(([kind, count]) => `${kind} ${count}`).join(", ");
    console.log(
      `${hashes.length} transactions (${mix}; ${failed} of all failed) in ${height} blocks; ` +
        `the other engine took ${seconds} s`,
    );
    // Else most of the code would never have run to its end, or nothing would have failed.
    expect(failed).toBeGreaterThan(COUNT / 20);
    expect(failed).toBeLessThan(COUNT / 2);
    expect([...author.faults, ...follower.faults]).toEqual([]);
  },
  2 * TIMEOUT_MS,
);

/** Sends everything and waits until it is mined. @returns hashes in order, and how many of each kind */
async function record(): Promise<{ hashes: string[]; kinds: ReadonlyMap<Kind, number> }> {
  const privateKey = hexToBytes(network.faucetKey);
  const faucet = { address: privateKeyToAddress(privateKey), privateKey, nextNonce: 0n };
  const load = new MixedLoad({ seed: SEED, faucet, operator: await operatorOf(author) });
  for (const raws of load.preparations()) {
    await untilMined([author], await submitAll(author, raws));
  }
  const hashes: string[] = [];
  const kinds = new Map<Kind, number>();
  let before: string[] = [];
  while (hashes.length < COUNT) {
    const round = await load.next(Math.min(ROUND, COUNT - hashes.length));
    for (const { kind } of round) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    const sent = await submitAll(
      author,
      round.map(({ raw }) => raw),
    );
    await untilMined([author], before);
    hashes.push(...sent);
    before = sent;
  }
  await untilMined([author], before);
  return { hashes, kinds };
}

async function operatorOf(node: NetworkNode): Promise<string> {
  const url = `http://127.0.0.1:${node.ports.rest}/cosmos/staking/v1beta1/validators`;
  const { validators } = (await (await fetch(url)).json()) as {
    readonly validators: readonly { readonly operator_address: string }[];
  };
  const [first] = validators;
  if (first === undefined) throw new Error("no validator");
  return first.operator_address;
}

async function countFailed(blocks: readonly AuditedBlock[]): Promise<number> {
  let failed = 0;
  for (const { height } of blocks) {
    const call = { method: "eth_getBlockReceipts", params: [`0x${height.toString(16)}`] };
    const [answer] = await evmBatch<readonly { readonly status: string }[]>(follower, [call]);
    failed += (answer?.result ?? []).filter(({ status }) => status === "0x0").length;
  }
  return failed;
}
