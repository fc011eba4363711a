/**
 * A validator whose home came back older: its state file no longer tells what it has signed since. The
 * network does, so it must hear of the network first.
 */
import { afterEach, describe, expect, it } from "@jest/globals";
import type { Vote } from "../../../chain/consensus/vote.js";
import { runConsensus } from "../../../node/compose/network.js";
import type { ConsensusMessage } from "../../../node/consensus/consensus-ports.js";
import { SignedChain } from "../../helpers/chains/signed-chain.js";
import { until } from "../../helpers/until.js";
import { validatorGenesis, ValidatorNode } from "../../helpers/chains/validator-node.js";
import { testLog as log } from "./support.js";

/** Where the backup was taken, and where the network is. */
const BACKUP = 2;
const NETWORK = 6;
const OWN = 1;

let node: ValidatorNode;

afterEach(() => node.stop());

/** A network that can be reached only once it is waited for. */
function networkOf(catchUp: () => Promise<void>, said: ConsensusMessage[]) {
  const asked: boolean[] = [];
  return {
    asked,
    catchUp: ({ mayBeFirst }: { readonly mayBeFirst: boolean }) => {
      asked.push(mayBeFirst);
      return mayBeFirst ? Promise.resolve() : catchUp();
    },
    attach: () => undefined,
    detach: () => undefined,
    halt: () => undefined,
    broadcast: { broadcast: (message: ConsensusMessage) => void said.push(message) },
    fallenBehind: (_witness: object, signal: AbortSignal) =>
      new Promise<void>((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      }),
  };
}

async function run(count: number) {
  const { genesis, seeds } = validatorGenesis(count);
  node = await ValidatorNode.open({ genesis, seed: seeds[OWN % count] });
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
    expect(asked).toEqual([false]);
    expect([...heights]).toEqual([NETWORK + 1]);
  });

  it("goes on by itself where nobody else could have decided anything", async () => {
    const { asked, heights } = await run(1);
    expect(asked).toEqual([true]);
    expect(heights.has(BACKUP + 1)).toBe(true);
  });
});
