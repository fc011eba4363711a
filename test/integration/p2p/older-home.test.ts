/**
 * A validator whose home came back older: its state file no longer tells what it has signed since. The
 * network does, so it must hear of the network first.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import type { Vote } from "../../../chain/consensus/vote.js";
import { runConsensus } from "../../../node/compose/network.js";
import type { ConsensusMessage } from "../../../node/consensus/consensus-ports.js";
import type { CatchUpOptions } from "../../../node/p2p/blocks/block-sync.js";
import { SignedChain } from "../../helpers/chains/signed-chain.js";
import { until } from "../../helpers/until.js";
import {
  validatorGenesis,
  ValidatorNode,
  writeValidatorHome,
} from "../../helpers/chains/validator-node.js";
import { testLog as log } from "./support.js";

/** Where the backup was taken, and where the network is. */
const BACKUP = 2;
const NETWORK = 6;
const OWN = 1;

let node: ValidatorNode;

afterEach(() => node.stop());

/** A network that can be reached only once it is waited for. */
function networkOf(catchUp: () => Promise<void>, said: ConsensusMessage[]) {
  const asked: Pick<CatchUpOptions, "mayBeFirst" | "provenHeight">[] = [];
  return {
    asked,
    catchUp: ({ mayBeFirst, provenHeight = 0 }: CatchUpOptions) => {
      asked.push({ mayBeFirst, provenHeight });
      const isWaitedFor = !mayBeFirst || provenHeight > BACKUP;
      return isWaitedFor ? catchUp() : Promise.resolve();
    },
    attach: () => undefined,
    skipCatchUp: () => undefined,
    detach: () => undefined,
    halt: () => undefined,
    broadcast: { broadcast: (message: ConsensusMessage) => void said.push(message) },
    fallenBehind: (_witness: object, signal: AbortSignal) =>
      new Promise<void>((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      }),
  };
}

/** @param signed height and step in the state file */
async function run(count: number, signed = { height: 0, step: 0 }) {
  const { genesis, seeds } = validatorGenesis(count);
  const [home, seed] = [
    fs.mkdtempSync(path.join(os.tmpdir(), "causeway-older-")),
    seeds[OWN % count],
  ];
  writeValidatorHome(home, seed ?? Buffer.of());
  const state = JSON.stringify({ height: String(signed.height), round: 0, step: signed.step });
  fs.writeFileSync(path.join(home, "data", "priv_validator_state.json"), state);
  node = await ValidatorNode.open({ genesis, seed, home });
  const chain = new SignedChain(genesis, seeds, node.view.head().hash);
  const next = async () => {
    const decided = chain.decide(chain.makeBlock());
    await node.consensus.apply(decided);
    chain.follow(decided, { appHash: node.view.head().hash });
  };
  while (node.height < BACKUP) await next();
  const said: ConsensusMessage[] = [];
  const network = networkOf(async () => {
    while (node.height < NETWORK) await next();
  }, said);
  node.run((signal) => {
    const fault = (error: unknown) => {
      throw error;
    };
    return runConsensus({
      network,
      consensus: node.consensus,
      log,
      signal,
      halt: fault,
      fatal: fault,
    });
  });
  const votes = (): Vote[] => said.flatMap((one) => (one.type === "vote" ? [one.vote] : []));
  await until(() => votes().length > 0, { timeoutMs: 20_000, what: "a vote" });
  return { asked: network.asked, heights: new Set(votes().map(({ height }) => height)) };
}

describe("a validator with an older home", () => {
  it("votes only behind what the network has decided", async () => {
    const { asked, heights } = await run(4);
    expect(asked).toEqual([{ mayBeFirst: false, provenHeight: 0 }]);
    expect([...heights]).toEqual([NETWORK + 1]);
  });

  it("goes on by itself where nobody else could have decided anything", async () => {
    const { asked, heights } = await run(1);
    expect(asked).toEqual([{ mayBeFirst: true, provenHeight: 0 }]);
    expect(heights.has(BACKUP + 1)).toBe(true);
  });

  it("waits for somebody who has them where its own key proves that blocks are missing", async () => {
    const { asked, heights } = await run(1, { height: NETWORK, step: 3 });
    expect(asked).toEqual([{ mayBeFirst: true, provenHeight: NETWORK - 1 }]);
    expect(Math.min(...heights)).toBe(NETWORK + 1);
  });

  it("votes at the height that a person wrote above the network's newest block, and at none below", async () => {
    const { asked, heights } = await run(1, { height: NETWORK + 1, step: 0 });
    expect(asked).toEqual([{ mayBeFirst: true, provenHeight: NETWORK }]);
    expect(Math.min(...heights)).toBe(NETWORK + 1);
  });
});
