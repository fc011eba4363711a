/** A validator that leaves consensus, follows decided blocks, and takes part again. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { Vote } from "../../../chain/consensus/vote.js";
import type { ConsensusEnd, ConsensusMessage } from "../../../node/consensus/consensus-ports.js";
import { SignedChain } from "../../helpers/chains/signed-chain.js";
import { until } from "../../helpers/until.js";
import { validatorGenesis, ValidatorNode } from "../../helpers/chains/validator-node.js";

const { genesis, seeds } = validatorGenesis(4);
const OWN = 1;
const OTHERS = [0, 2, 3];

let node: ValidatorNode;
let chain: SignedChain;
let said: ConsensusMessage[];

beforeEach(async () => {
  said = [];
  node = await ValidatorNode.open({ genesis, seed: seeds[OWN] });
  chain = new SignedChain(genesis, seeds, node.view.head().hash);
});

afterEach(() => node.stop());

const votes = (): Vote[] => said.flatMap((one) => (one.type === "vote" ? [one.vote] : []));

/** Takes part, and leaves once it has voted at the height. */
async function takePart(height: number): Promise<ConsensusEnd> {
  const leaving = new AbortController();
  const before = votes().length;
  const broadcast = (message: ConsensusMessage) => said.push(message);
  const running = node.consensus.start({ broadcast }, leaving.signal);
  const hasVoted = () =>
    votes()
      .slice(before)
      .some((vote) => vote.height === height);
  await until(hasVoted, { timeoutMs: 20_000, what: "a vote" });
  expect(node.consensus.isCatchingUp()).toBe(false);
  leaving.abort(new Error("fell behind"));
  return running;
}

async function follow(): Promise<void> {
  const decided = chain.decide(chain.makeBlock(), OTHERS);
  await node.consensus.apply(decided);
  chain.follow(decided, { appHash: node.view.head().hash });
}

/** What was signed for each place; a place with two is a double signature. */
function signaturesByPlace(): ReadonlyMap<string, ReadonlySet<string>> {
  const places = new Map<string, Set<string>>();
  for (const { height, round, type, signature } of votes()) {
    const place = `${height}/${round}/${type}`;
    const known = places.get(place) ?? new Set<string>();
    places.set(place, known.add(Buffer.from(signature).toString("hex")));
  }
  return places;
}

describe("a validator that leaves consensus", () => {
  it("says nothing until it is back, and then speaks of the new height only", async () => {
    expect(await takePart(1)).toBe("stopped");
    const before = said.length;
    expect(node.consensus.isCatchingUp()).toBe(true);
    expect(node.consensus.status().height).toBe(1);
    const [first] = said;
    if (first === undefined) throw new Error("it has spoken");
    expect(await node.consensus.receive(first, "peer")).toBe("useless");
    for (let height = 1; height <= 3; height++) await follow();
    expect(said.length).toBe(before);
    expect(await takePart(4)).toBe("stopped");
    const after = said.slice(before).flatMap((one) => (one.type === "vote" ? [one.vote] : []));
    expect(new Set(after.map(({ height }) => height))).toEqual(new Set([4]));
    await follow();
    expect([node.height, node.halts]).toEqual([4, []]);
  });

  it("signs nothing twice when it comes back to the same height, also after a restart", async () => {
    await takePart(1);
    await takePart(1);
    await node.stop({ keep: true });
    node = await ValidatorNode.open({ genesis, seed: seeds[OWN], home: node.home });
    expect(await takePart(1)).toBe("stopped");
    expect(signaturesByPlace().size).toBeLessThan(votes().length);
    for (const [place, signatures] of signaturesByPlace()) {
      expect({ place, count: signatures.size }).toEqual({ place, count: 1 });
    }
    expect(node.halts).toEqual([]);
  });

  it("is refused while it takes part, and takes no block then", async () => {
    const leaving = new AbortController();
    const running = node.consensus.start({ broadcast: () => undefined }, leaving.signal);
    await until(() => !node.consensus.isCatchingUp(), { timeoutMs: 10_000 });
    await expect(follow()).rejects.toThrow("consensus has started");
    const again = node.consensus.start({ broadcast: () => undefined }, leaving.signal);
    await expect(again).rejects.toThrow("consensus has started");
    leaving.abort(new Error("enough"));
    expect(await running).toBe("stopped");
    await follow();
    expect(node.height).toBe(1);
  });
});
