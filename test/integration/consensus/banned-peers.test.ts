/** False messages of peers: they are told what judging took, and what is left of the banned is dropped. */
import { afterEach, describe, expect, it } from "@jest/globals";
import { type Vote, VOTE_TYPE } from "../../../chain/consensus/vote.js";
import { listeningValidator } from "../../helpers/chains/listening-validator.js";
import { until } from "../../helpers/until.js";

let stop = () => Promise.resolve();

afterEach(() => stop());

/** A validator that hears a liar: true votes of one validator under another's signature. */
async function scene() {
  const all = await listeningValidator();
  stop = () => all.node.stop();
  const { node, offer, vote, tell, others } = all;
  const [who = 0, other = 0] = others;
  const { signature } = vote(other);
  /** What turned out invalid, and how long that took. */
  const invalid: (readonly [name: string, spentMs: number])[] = [];
  const lie = (name: string, change: Partial<Vote> = {}) => {
    const told = (spentMs: number) => void invalid.push([name, spentMs]);
    const message = { type: "vote", vote: { ...vote(who, change), signature } } as const;
    return node.consensus.receive(message, "liar", told);
  };
  const decide = async () => {
    const { blockId, proposal, parts } = offer();
    for (const message of [proposal, ...parts]) await tell(message);
    const type = VOTE_TYPE.precommit;
    for (const one of others) await tell({ type: "vote", vote: vote(one, { type, blockId }) });
    const begun = () => node.consensus.status().height === 2;
    await until(begun, { timeoutMs: 10_000, what: "height 2" });
    // Behind what came early and is looked at now.
    await lie("late");
  };
  return { ...all, invalid, lie, decide };
}

describe("false messages", () => {
  it("are judged, and their sender is told how long that took", async () => {
    const { lie, invalid, tell, vote, others } = await scene();
    expect(await lie("false")).toBe("invalid");
    expect(invalid).toEqual([["false", expect.any(Number)]]);
    expect(await tell({ type: "vote", vote: vote(others[0] ?? 0) })).toBe("new");
    expect(await lie("known")).toBe("known");
    expect(invalid).toHaveLength(1);
  });

  it("of the next height are told of when it begins: whoever sent them got another answer", async () => {
    const { lie, invalid, decide } = await scene();
    expect(await lie("early", { height: 2 })).toBe("useless");
    expect(invalid).toEqual([]);
    await decide();
    expect(invalid.map(([name]) => name)).toEqual(["early"]);
  });

  it("are not looked at any more once their sender is banned, those of the next height either", async () => {
    const { node, lie, invalid, decide, tell, vote, others } = await scene();
    expect(await lie("early", { height: 2 })).toBe("useless");
    const waiting = Array.from({ length: 50 }, (_, at) => lie(`${at}`, { timeNs: BigInt(at) }));
    const honest = tell({ type: "vote", vote: vote(others[2] ?? 0) });
    node.consensus.forget("liar");
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(["useless"]));
    expect(await honest).toBe("new");
    await decide();
    expect(invalid).toEqual([]);
  });
});
