/**
 * A validator that runs twice, on a copy of its home, under load: both sign with one key. The
 * others write down the evidence, remove it, and lose nothing.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { setTimeout as pause } from "node:timers/promises";
import { until } from "../../helpers/until.js";
import { comet, cometBatch } from "../calls.js";
import { auditChain, compareMined } from "../chain-audit.js";
import {
  type NetworkNode,
  type RunningNetwork,
  startNetwork,
  untilDeciding,
  untilHeight,
  writeSetting,
} from "../network.js";
import { startTraffic, untilMined } from "../traffic.js";

const POLL_MS = 200;

/** What a validator says of a vote that it did not sign in this process. */
const CONFLICT = "a conflicting vote by this validator's key";

interface Validators {
  readonly validators: readonly { readonly address: string }[];
}

interface Vote {
  readonly height: string;
  readonly round: number;
  readonly type: number;
  readonly validator_address: string;
  readonly block_id: { readonly hash: string };
}

interface Evidence {
  readonly type: string;
  readonly value: { readonly vote_a: Vote; readonly vote_b: Vote };
}

interface Block {
  readonly block: {
    readonly header: { readonly height: string };
    readonly evidence: { readonly evidence: readonly Evidence[] };
  };
}

describe("a validator that runs twice", () => {
  let network: RunningNetwork;
  let liar: NetworkNode;
  let copy: NetworkNode;
  let honest: readonly NetworkNode[];

  beforeAll(async () => {
    network = await startNetwork({ validators: 4, blockIntervalMs: 200, hasShortTimeouts: true });
    const original = network.validators.at(-1);
    if (original === undefined) throw new Error("no validator");
    liar = original;
    honest = network.validators.filter((node) => node !== liar);
    // The operator's mistake: a home that was copied to another machine while the node was down.
    await liar.stop();
    copy = network.copyOf(liar);
  });
  afterAll(async () => {
    await network?.remove();
  });

  it("is refused where its own last blocks are looked at", async () => {
    writeSetting(copy, "double_sign_check_height", "10");
    // It looks when it has the blocks of the others, and may have answered before.
    await copy.start().catch(() => undefined);
    expect(await copy.ended()).toBe(1);
    expect(copy.output).toContain("DOUBLE_SIGN_RISK");
    expect(copy.output).toContain("another process may be using it");
    writeSetting(copy, "double_sign_check_height", "0");
  });

  it("is removed two heights after the evidence, and nothing else happens", async () => {
    const traffic = await startTraffic(network, honest, 100);
    const [first] = honest;
    if (first === undefined) throw new Error("no honest validator");
    await liar.start();
    await untilDeciding(network.validators);
    const guilty = (await liar.status()).validator_info.address;
    const from = await first.height();
    await copy.start();
    expect((await copy.status()).validator_info.address).toBe(guilty);
    await until(
      async () => {
        await pause(POLL_MS);
        return !(await validatorsOf(first)).includes(guilty);
      },
      { timeoutMs: 120_000, what: "the double signer is removed" },
    );
    const { accepted } = await traffic.stop();
    await untilMined(honest, accepted);
    await untilDeciding(honest);
    const height = await first.height();
    await untilHeight(honest, height);

    const found = await evidenceIn(first, from, height);
    expect(found.length).toBeGreaterThanOrEqual(1);
    const [{ at, evidence } = { at: 0, evidence: undefined }] = found;
    const { vote_a: one, vote_b: other } = evidence?.value ?? {};
    console.log(`evidence of height ${one?.height} in block ${at}, validator runs from ${from}`);
    expect(evidence?.type).toBe("tendermint/DuplicateVoteEvidence");
    expect([one?.validator_address, other?.validator_address]).toEqual([guilty, guilty]);
    const place = { height: other?.height, round: other?.round, type: other?.type };
    expect(one).toMatchObject(place);
    expect(one?.block_id.hash).not.toBe(other?.block_id.hash);

    for (const node of honest) {
      expect([node.name, await evidenceIn(node, from, height)]).toEqual([node.name, found]);
      expect(await validatorsOf(node, at + 1)).toContain(guilty);
      expect(await validatorsOf(node, at + 2)).not.toContain(guilty);
    }
    const blocks = await auditChain(honest, height);
    expect(compareMined(blocks, accepted)).toEqual({ lost: [], repeated: [] });
  });

  it("goes on as two nodes without power, on the same chain", async () => {
    const both = [liar, copy];
    await untilDeciding([...honest, ...both]);
    const height = Math.min(...(await Promise.all(both.map((node) => node.height()))));
    await auditChain([...honest, ...both], height);
    for (const node of both) {
      expect([node.name, (await node.status()).validator_info.voting_power]).toEqual([
        node.name,
        "0",
      ]);
    }
    expect(await nodeId(copy)).not.toBe(await nodeId(liar));
    for (const { name, faults } of honest) expect([name, faults]).toEqual([name, []]);
    // Its own operator has to act: both of them see what the other one signs.
    for (const { name, faults } of both) {
      const said = faults.filter((line) => !line.includes("DOUBLE_SIGN_RISK"));
      expect([name, said.filter((line) => !line.includes(CONFLICT))]).toEqual([name, []]);
    }
    expect(`${liar.output}${copy.output}`).toContain(CONFLICT);
  });
});

async function validatorsOf(node: NetworkNode, height?: number): Promise<string[]> {
  const route = height === undefined ? "validators" : `validators?height=${height}`;
  const { validators } = await comet<Validators>(node, route);
  return validators.map(({ address }) => address);
}

async function nodeId(node: NetworkNode): Promise<string> {
  return (await comet<{ node_info: { id: string } }>(node, "status")).node_info.id;
}

async function evidenceIn(node: NetworkNode, from: number, to: number) {
  const heights = Array.from({ length: to - from + 1 }, (_, index) => from + index);
  const calls = heights.map((height) => ({ method: "block", params: { height: `${height}` } }));
  const blocks = await cometBatch<Block>(node, calls);
  return blocks.flatMap(({ block }) =>
    block.evidence.evidence.map((evidence) => ({ at: Number(block.header.height), evidence })),
  );
}
