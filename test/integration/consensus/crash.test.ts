/**
 * A validator among four that stops at every numbered place and comes back: it takes part again,
 * and nothing is signed twice. (A process that dies by SIGKILL: test/faults/consensus-crash.)
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import { splitIntoParts } from "../../../chain/consensus/consensus-block.js";
import {
  CONSENSUS_FAILPOINTS,
  type ConsensusFailpoint,
} from "../../../node/consensus/height-run.js";
import { Wal } from "../../../node/consensus/log/wal.js";
import { STEP } from "../../../node/consensus/machine/consensus-state.js";
import { until } from "../../helpers/until.js";
import { ValidatorNetwork } from "../../helpers/chains/validator-network.js";
import {
  validatorGenesis,
  ValidatorNode,
  writeValidatorHome,
} from "../../helpers/chains/validator-node.js";

let cleanUp: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const step of cleanUp.toReversed()) await step();
  cleanUp = [];
});

describe("a validator among four", () => {
  it("comes back from a crash at every place, and never contradicts itself", async () => {
    const { genesis, seeds } = validatorGenesis(4);
    const net = new ValidatorNetwork(genesis, seeds);
    cleanUp.push(() => net.close());
    for (const index of [0, 2, 3]) await net.start(index);
    let home: string | undefined;
    for (const name of CONSENSUS_FAILPOINTS) {
      const crash = armed(name);
      const options = { failpoint: crash.failpoint, ...(home === undefined ? {} : { home }) };
      const node = await net.start(1, options);
      await until(() => node.halts.length > 0, { timeoutMs: 30_000, what: `a crash at ${name}` });
      expect(node.halts).toEqual([name]);
      const before = net.nodes[0]?.height ?? 0;
      home = await net.halt(1);
      // The others go on without it.
      await net.reach(before + 1);
    }
    const back = await net.start(1, home === undefined ? {} : { home });
    await net.reach((net.nodes[0]?.height ?? 0) + 5);
    for (let height = 1; height <= back.height; height++) {
      const own = back.consensus.load(height)?.block;
      expect(own?.evidence).toEqual([]);
      const other = net.nodes[0]?.view.block(height)?.block.hash;
      if (other !== undefined) expect(back.view.block(height)?.block.hash).toBe(other);
    }
    // It takes part again: the newest commits have its signature.
    const signer = back.signer?.address;
    await until(
      () => {
        const { height } = back;
        const signatures = back.consensus.load(height)?.commit.signatures ?? [];
        return signatures.some(
          (one) => "validatorAddress" in one && one.validatorAddress === signer,
        );
      },
      { timeoutMs: 20_000, what: "the validator signs again" },
    );
  });
});

/** Throws at the second hit of one place, so that at least one height went by. */
function armed(name: ConsensusFailpoint): { failpoint: (at: ConsensusFailpoint) => void } {
  let hits = 0;
  return {
    failpoint(at) {
      if (at === name && ++hits === 2) throw new Error(name);
    },
  };
}

describe("a validator alone", () => {
  it("decides the very block that it had proposed, in the same round", async () => {
    const { genesis, seeds } = validatorGenesis(1, { blockIntervalMs: 50 });
    const [seed] = seeds;
    let home: string | undefined;
    for (const name of CONSENSUS_FAILPOINTS) {
      const proposed = new Map<number, string>();
      const options = { genesis, seed, ...(home === undefined ? {} : { home }) };
      const node = await ValidatorNode.open({ ...options, ...armed(name) });
      node.start((message) => {
        if (message.type !== "proposal") return;
        proposed.set(message.proposal.height, message.proposal.blockId.hash);
      });
      await until(() => node.halts.length > 0, { timeoutMs: 20_000, what: `a crash at ${name}` });
      const height = node.height + 1;
      await node.stop({ keep: true });
      home = node.home;
      const back = await ValidatorNode.open({ ...options, home });
      back.start(() => undefined);
      await until(() => back.height > height, { timeoutMs: 20_000, what: `a block after ${name}` });
      const commit = back.consensus.load(height)?.commit;
      // No round is lost: what the log had was enough to go on from.
      expect({ name, round: commit?.round }).toEqual({ name, round: 0 });
      const hash = proposed.get(height);
      if (hash !== undefined) expect(commit?.blockId?.hash).toBe(hash);
      await back.stop({ keep: name !== CONSENSUS_FAILPOINTS.at(-1) });
    }
  });

  it("decides what it proposed anew where a crash had left a part of another block", async () => {
    const { genesis, seeds } = validatorGenesis(1, { blockIntervalMs: 50 });
    const [seed] = seeds;
    const home = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-half-proposal-"));
    cleanUp.push(() => fs.rmSync(home, { recursive: true, force: true }));
    if (seed === undefined) throw new RangeError("a seed is missing");
    writeValidatorHome(home, seed);
    await writeHalfProposal(home);
    const options = { genesis, seed, home };
    // It makes another block than before, as new transactions make it, and dies behind its votes.
    let voted = 0;
    const node = await ValidatorNode.open({
      ...options,
      failpoint(name) {
        if (name !== "consensus.after-own-precommit-logged") return;
        voted++;
        throw new Error(name);
      },
    });
    node.start(() => undefined);
    await until(() => node.halts.length > 0, { timeoutMs: 20_000, what: "the second crash" });
    await node.stop({ keep: true });
    expect({ voted, height: node.height }).toEqual({ voted: 1, height: 0 });
    const back = await ValidatorNode.open(options);
    cleanUp.push(() => back.stop());
    back.start(() => undefined);
    await until(() => back.height > 1, { timeoutMs: 20_000, what: "blocks after both crashes" });
    expect(back.consensus.load(1)?.commit.round).toBe(0);
  });
});

/** The log of a process that died while it wrote its first proposal of two parts: one is there. */
async function writeHalfProposal(home: string): Promise<void> {
  const { wal } = await Wal.open(path.join(home, "data", "cs.wal"), 0);
  const { header, parts } = splitIntoParts(Buffer.alloc(100_000, 7));
  const [part] = parts;
  if (part === undefined) throw new RangeError("a part is missing");
  await wal.append({ type: "timeout", height: 1, round: 0, step: STEP.newHeight });
  const message = { type: "part" as const, height: 1, round: 0, header, part };
  await wal.append({ type: "message", isOwn: true, message });
  await wal.close();
}
