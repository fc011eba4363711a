/** A chain that stands still says so, and for whom it waits. */
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { VOTE_TYPE } from "../../../chain/consensus/vote.js";
import type { ConsensusMessage } from "../../../node/consensus/consensus-ports.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { SignedChain } from "../../helpers/chains/signed-chain.js";
import {
  PATIENT_TIMEOUTS,
  validatorGenesis,
  ValidatorNode,
} from "../../helpers/chains/validator-node.js";

/** Turns of the event loop until it is not coming; each moves the timers by a second. */
const MOST_SECONDS = 10_000;

const { genesis, seeds } = validatorGenesis(4);
let node: ValidatorNode;
let lines: Record<string, unknown>[];

beforeEach(async () => {
  lines = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const log = createLogger({ component: "test", level: "info", destination });
  const options = { genesis, seed: seeds[0], timeouts: PATIENT_TIMEOUTS, log };
  node = await ValidatorNode.open(options);
});
afterEach(() => node.stop());

const told = () => lines.filter(({ msg }) => String(msg).startsWith("no block is decided"));

/** Seconds of the timers alone pass until it is so. */
async function seconds(isSo: () => boolean): Promise<void> {
  for (let second = 0; !isSo(); second++) {
    if (second === MOST_SECONDS) throw new Error("it does not come");
    jest.advanceTimersByTime(1_000);
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
}

/** The next line about it. */
async function nextTold(): Promise<Record<string, unknown> | undefined> {
  const count = told().length;
  await seconds(() => told().length > count);
  return told()[count];
}

describe("a height that is not decided", () => {
  it("is told of with the power that was heard, again and again", async () => {
    jest.useFakeTimers({ doNotFake: ["nextTick", "queueMicrotask", "setImmediate", "Date"] });
    try {
      const chain = new SignedChain(genesis, seeds, node.view.head().hash);
      const said: ConsensusMessage[] = [];
      node.start((message) => said.push(message));
      const place = {
        type: VOTE_TYPE.prevote,
        height: 1,
        round: 0,
        blockId: undefined,
        timeNs: 9n,
      };
      const addressOf = (who: number) => chain.vote(who, place).validatorAddress;
      // Files are written at their own pace, whatever the timers say.
      await seconds(() => said.some(({ type }) => type === "vote"));
      const first = await nextTold();
      expect(first).toMatchObject({ level: "warn", height: 1, heardPower: "10", totalPower: "40" });
      expect(new Set(first?.["silent"] as string[])).toEqual(new Set([1, 2, 3].map(addressOf)));
      await node.consensus.receive({ type: "vote", vote: chain.vote(2, place) }, "peer");
      const second = await nextTold();
      expect(second).toMatchObject({ height: 1, heardPower: "20" });
      expect(new Set(second?.["silent"] as string[])).toEqual(new Set([1, 3].map(addressOf)));
    } finally {
      jest.useRealTimers();
    }
  });
});
