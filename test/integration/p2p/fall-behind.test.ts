/** A validator that was cut off goes back to block sync, and takes part again. */
import { afterEach, describe, expect, it } from "@jest/globals";
import { COMMIT_FLAG } from "../../../chain/consensus/commit.js";
import { STEP } from "../../../node/consensus/machine/consensus-state.js";
import { until } from "../../helpers/until.js";
import { validatorGenesis } from "../../helpers/chains/validator-node.js";
import { Ways } from "../../network/proxy.js";
import { join, leaveAll, type Member, place, reach } from "./members.js";

/** More heights a second than messages of consensus repair. */
const BLOCK_INTERVAL_MS = 50;

/** Far more than repair brings before a proof is asked for. */
const LOST_BLOCKS = 60;

/** The first decides alone, so that a cut costs no rounds; the second one's signature is extra. */
const POWERS = [40, 1] as const;

/** Its own signatures of before must not keep it from coming back. */
const SUSPICIOUS = { doubleSignCheckBlocks: 1_000 } as const;

const ways = new Set<Ways>();

afterEach(async () => {
  await leaveAll();
  for (const one of ways) one.close();
  ways.clear();
});

/** Two validators; the second reaches the first only through a way that can be cut. */
async function network() {
  const { genesis: equal, seeds } = validatorGenesis(2, { blockIntervalMs: BLOCK_INTERVAL_MS });
  const validators = equal.validators.map((one, index) => ({ ...one, power: POWERS[index] ?? 0 }));
  const genesis = { ...equal, validators };
  const [strongPlace, weakPlace] = await Promise.all([place(), place()]);
  const way = new Ways();
  ways.add(way);
  const { address } = strongPlace;
  const port = await way.open({ from: 1, to: 0, port: address.port });
  const strong = await join(genesis, strongPlace, { seed: seeds[0], persistentPeers: [] });
  const persistentPeers = [{ ...address, port }];
  const weak = await join(genesis, weakPlace, { seed: seeds[1], persistentPeers, ...SUSPICIOUS });
  return { strong, weak, way };
}

/** Whether the signer's signature is in the commit of a height. */
function hasSigned(witness: Member, signer: Member, height: number): boolean {
  const signatures = witness.node.consensus.load(height)?.commit.signatures ?? [];
  const own = signer.node.signer?.address;
  return signatures.some((one) => {
    return one.flag === COMMIT_FLAG.commit && one.validatorAddress === own;
  });
}

/** What moves a node to follow are signatures of a third of the power, nothing less. */
function expectProofs(strong: Member, weak: Member): void {
  const decided = strong.node.consensus.load(strong.node.height - 1);
  if (decided === undefined) throw new Error("a decided block");
  const { commit } = decided;
  const isProof = (changes: Partial<typeof commit>) =>
    weak.node.consensus.isProof({ ...commit, ...changes });
  const ownSigner = weak.node.signer?.address;
  const strongOnly = commit.signatures.filter(
    (one) => one.flag === COMMIT_FLAG.commit && one.validatorAddress !== ownSigner,
  );
  const [one] = strongOnly;
  if (one?.flag !== COMMIT_FLAG.commit) throw new Error("the strong one has signed");
  expect(isProof({})).toBe(true);
  expect(isProof({ signatures: strongOnly })).toBe(true);
  expect(isProof({ height: 1_000_000_000 })).toBe(false);
  expect(isProof({ signatures: commit.signatures.filter((other) => other !== one) })).toBe(false);
  expect(isProof({ signatures: [{ ...one, flag: COMMIT_FLAG.nil }] })).toBe(false);
}

describe("a validator that was cut off", () => {
  it("follows the chain by block sync and signs again", async () => {
    const { strong, weak, way } = await network();
    const isFollowing = () => weak.node.consensus.isCatchingUp();
    await until(() => weak.entries() > 0 && !isFollowing(), { timeoutMs: 60_000, what: "start" });
    const newest = () => strong.node.height - 1;
    const isSigning = (from: number) => newest() > from && hasSigned(strong, weak, newest());
    // A busy machine may have sent it back to block sync before: what counts is from the cut on.
    await until(() => isSigning(0) && !isFollowing(), { timeoutMs: 60_000, what: "a signature" });
    // Whoever takes part is told how far the others are, too.
    const told = weak.network.networkHeight();
    expect([told > 0, told <= strong.node.height]).toEqual([true, true]);
    way.split([0]);
    const [cutAt, entries] = [weak.node.height, weak.entries()];
    const followed = weak.follows.length;
    await reach([strong], cutAt + LOST_BLOCKS);
    expect([weak.entries(), weak.follows.length]).toEqual([entries, followed]);

    way.heal();
    await until(() => weak.follows.length > followed, { timeoutMs: 60_000, what: "block sync" });
    // Nothing of the height in progress is left that could be signed or repaired.
    expect(weak.follows[followed]).toMatchObject({ step: STEP.newHeight, prevotes: [] });
    await until(() => weak.entries() > entries && !isFollowing(), {
      timeoutMs: 60_000,
      what: "return",
    });
    const backAt = weak.node.height;
    expectProofs(strong, weak);
    expect(backAt).toBeGreaterThanOrEqual(cutAt + LOST_BLOCKS);
    await until(() => isSigning(backAt), { timeoutMs: 60_000, what: "a new signature" });
    expect([...strong.node.halts, ...weak.node.halts]).toEqual([]);
    const height = weak.node.height;
    const hashes = [strong, weak].map(({ node }) => node.view.block(height)?.block.hash);
    expect(new Set(hashes).size).toBe(1);
  });
});
