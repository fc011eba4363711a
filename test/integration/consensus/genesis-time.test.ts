/** A chain whose genesis time is to come: nobody decides anything before. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import type { ConsensusEnd, ConsensusMessage } from "../../../node/consensus/consensus-ports.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { until } from "../../helpers/until.js";
import {
  validatorGenesis,
  ValidatorNode,
  writeValidatorHome,
} from "../../helpers/chains/validator-node.js";

const { genesis, seeds } = validatorGenesis(1);

/** More than a timer takes. */
const FAR_MS = 60 * 86_400_000;

let node: ValidatorNode;

afterEach(() => node.stop());

/** Starts the only validator so long before the genesis time; its clock stands still. */
async function start(earlyMs: number, { isStateLost = false } = {}) {
  const clock = { ...systemClock, nowMs: () => genesis.genesisTimeMs - earlyMs };
  const home = mkdtempSync(join(tmpdir(), "causeway-genesis-time-"));
  writeValidatorHome(home, seeds[0] ?? Buffer.of());
  if (isStateLost) rmSync(join(home, "data", "priv_validator_state.json"));
  node = await ValidatorNode.open({ genesis, seed: seeds[0], home, clock });
  const said: ConsensusMessage[] = [];
  const leaving = new AbortController();
  const broadcast = (message: ConsensusMessage) => said.push(message);
  const running = node.consensus.start({ broadcast }, leaving.signal);
  const stop = (): Promise<ConsensusEnd> => {
    leaving.abort(new Error("enough"));
    return running;
  };
  return { clock, said, stop };
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe("before the genesis time", () => {
  it("nothing is proposed, voted or decided; then the chain begins", async () => {
    const { clock, said, stop } = await start(50);
    await pause(500);
    expect([node.height, said.length]).toEqual([0, 0]);
    clock.nowMs = () => systemClock.nowMs();
    await until(() => node.height >= 2, { timeoutMs: 20_000, what: "the second block" });
    expect([await stop(), node.halts]).toEqual(["stopped", []]);
  });

  it("a clock that is set right is followed at once: the others begin by theirs", async () => {
    const { clock, stop } = await start(FAR_MS);
    await pause(200);
    clock.nowMs = () => systemClock.nowMs();
    await until(() => node.height >= 1, { timeoutMs: 20_000, what: "the first block" });
    expect([await stop(), node.halts]).toEqual(["stopped", []]);
  });

  it("a key whose state file is lost signs nothing where the clock comes to be long behind it", async () => {
    const { clock, said, stop } = await start(FAR_MS, { isStateLost: true });
    await pause(200);
    clock.nowMs = () => genesis.genesisTimeMs + FAR_MS;
    await until(() => node.halts.length > 0 || node.height > 0, { timeoutMs: 20_000 });
    expect([node.height, said.length]).toEqual([0, 0]);
    expect(node.halts).toEqual([expect.stringContaining("priv_validator_state.json is missing")]);
    await stop();
  });

  it("a node ends when it is told, however far away that time is", async () => {
    const { said, stop } = await start(FAR_MS);
    await pause(200);
    expect([await stop(), node.height, said.length]).toEqual(["stopped", 0, 0]);
  });
});
