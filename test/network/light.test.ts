/**
 * CometBFT's light client, which knows nothing of us, follows our chain: by its validators'
 * signatures, and over a change of the validators, which a double signer brings about.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import fs from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { homePaths } from "../../cli/home/home.js";
import { until } from "../helpers/until.js";
import { comet } from "./calls.js";
import { auditChain, readHeader } from "./chain-audit.js";
import { startLightClient, type VerifiedCommit } from "./light.js";
import { type NetworkNode, type RunningNetwork, startNetwork, untilHeight } from "./network.js";

const POLL_MS = 200;

interface Validators {
  readonly block_height: string;
  readonly total: string;
  readonly validators: readonly { readonly address: string }[];
}

describe("cometbft light", () => {
  let network: RunningNetwork;
  let nodes: readonly NetworkNode[];
  let first: NetworkNode;
  let witness: NetworkNode;

  beforeAll(async () => {
    network = await startNetwork({
      validators: 5,
      fullNodes: 1,
      blockIntervalMs: 200,
      hasShortTimeouts: true,
    });
    nodes = network.validators;
    const [one, other] = nodes;
    if (one === undefined || other === undefined) throw new Error("no validators");
    [first, witness] = [one, other];
  });
  afterAll(async () => {
    await network?.remove();
  });

  it("verifies new headers through a primary and a witness", async () => {
    await untilHeight(nodes, 5);
    const { hash } = await readHeader(first, 3);
    const client = await startLightClient({ network, primary: first, witness, height: 3, hash });
    for (let turn = 0; turn < 3; turn += 1) {
      const height = await first.height();
      expect(hashOf(await client.commit(height))).toBe((await readHeader(witness, height)).hash);
      await untilHeight(nodes, height + 2);
    }
    expect(client.output()).toContain("VerifyHeader");
    await client.stop();
  });

  it("refuses to begin at a header that the chain does not have", async () => {
    const hash = "AB".repeat(32);
    const started = startLightClient({ network, primary: first, witness, height: 3, hash });
    await expect(started).rejects.toThrow(/expected header's hash AB/);
  });

  it("verifies headers beyond a change of the validators", async () => {
    const [twin] = network.fullNodes;
    const original = nodes.at(-1);
    if (twin === undefined || original === undefined) throw new Error("no node");
    const before = await first.height();
    const { hash, validatorsHash } = await readHeader(first, before);
    // The operator's mistake: the same key on two machines.
    fs.copyFileSync(homePaths(original.home).validatorKey, homePaths(twin.home).validatorKey);
    const guilty = (await original.status()).validator_info.address;
    await twin.start();
    await until(
      async () => {
        await pause(POLL_MS);
        const { validators } = await comet<Validators>(first, "validators");
        return !validators.some(({ address }) => address === guilty);
      },
      { timeoutMs: 60_000, what: "the double signer is removed" },
    );
    const honest = nodes.filter((node) => node !== original);
    await untilHeight(honest, (await first.height()) + 3);
    const height = await first.height();
    const after = await readHeader(first, height);
    expect(after.validatorsHash).not.toBe(validatorsHash);
    console.log(`validators changed between ${before} and ${height}`);
    for (const isSequential of [false, true]) {
      const start = { network, primary: first, witness, height: before, hash };
      const client = await startLightClient({ ...start, isSequential });
      const answer = await client.commit(height);
      expect(hashOf(answer)).toBe(after.hash);
      expect(answer.signed_header.header.validators_hash).toBe(after.validatorsHash);
      await client.stop();
    }
    await auditChain(honest, height);
  });
});

function hashOf(answer: VerifiedCommit): string {
  return answer.signed_header.commit.block_id.hash;
}
