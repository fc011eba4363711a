/** A network that halts before an upgrade: who is some blocks behind gets the last ones, and halts too. */
import { afterEach, expect, it } from "@jest/globals";
import type { BlockApplication } from "../../../node/blocks/block-application.js";
import { UpgradeError } from "../../../node/modules/upgrade/upgrades.js";
import { validatorGenesis } from "../../helpers/chains/validator-node.js";
import { until } from "../../helpers/until.js";
import { Ways } from "../../network/proxy.js";
import { join, leave, leaveAll, place } from "./members.js";

/** The first decides alone. */
const POWERS = [40, 1] as const;

/** Blocks that the other one lacks: fewer than send a node back to block sync. */
const LOST_BLOCKS = 5;

const REASON = 'UPGRADE "next" NEEDED';

const way = new Ways();
let last = Number.POSITIVE_INFINITY;

afterEach(async () => {
  await leaveAll();
  way.close();
});

/** Of a program that has no handler for what is planned behind the last block. */
function watch(application: BlockApplication): BlockApplication {
  let height = 0;
  return {
    ...application,
    async settle(...decided) {
      const tip = await application.settle(...decided);
      ({ height } = tip);
      return tip;
    },
    assertMayGoOn() {
      if (height >= last) throw new UpgradeError("UPGRADE_NEEDED", REASON);
    },
  };
}

it("a node that has halted helps one that lacks its last blocks", async () => {
  const { genesis: equal, seeds } = validatorGenesis(2, { blockIntervalMs: 50 });
  const validators = equal.validators.map((one, index) => ({ ...one, power: POWERS[index] ?? 0 }));
  const genesis = { ...equal, validators };
  const [ahead, behind] = await Promise.all([place(), place()]);
  const { address } = ahead;
  const port = await way.open({ from: 1, to: 0, port: address.port });
  const strong = await join(genesis, ahead, { seed: seeds[0], persistentPeers: [], watch });
  const persistentPeers = [{ ...address, port }];
  const weak = await join(genesis, behind, { seed: seeds[1], persistentPeers, watch });
  const takesPart = () => weak.entries() > 0 && !weak.node.consensus.isCatchingUp();
  // On a busy machine it may be late itself, and back at following: it is cut off when it keeps up.
  const keepsUp = () => takesPart() && weak.node.height >= strong.node.height - 1;
  await until(() => weak.node.height >= 3 && keepsUp(), { timeoutMs: 60_000, what: "the start" });
  way.split([0]);
  last = strong.node.height + LOST_BLOCKS;
  await until(() => strong.node.halts.length > 0, { timeoutMs: 30_000, what: "the halt" });
  expect([strong.node.height, weak.node.height < last]).toEqual([last, true]);
  expect(takesPart()).toBe(true);
  way.heal();
  await until(() => weak.node.halts.length > 0, { timeoutMs: 30_000, what: "the last blocks" });
  expect([weak.node.height, weak.node.halts]).toEqual([last, [REASON]]);
});

it("a validator that is started again alone at the upgrade says so, although no peer answers", async () => {
  const { genesis, seeds } = validatorGenesis(2, { blockIntervalMs: 50 });
  last = Number.POSITIVE_INFINITY;
  const places = await Promise.all([place(), place()]);
  const members = await Promise.all(
    places.map((own, index) => {
      const persistentPeers = places.filter((one) => one !== own).map(({ address }) => address);
      return join(genesis, own, { seed: seeds[index], persistentPeers, watch });
    }),
  );
  const [first, second] = members;
  if (first === undefined || second === undefined) throw new Error("there are two of them");
  const height = () => Math.max(first.node.height, second.node.height);
  await until(() => height() >= 3, { timeoutMs: 60_000, what: "some blocks" });
  last = height() + 1;
  const haveHalted = () => members.every(({ node }) => node.halts.length > 0);
  await until(haveHalted, { timeoutMs: 30_000, what: "the halt" });
  const home = await leave(first, true);
  await leave(second);
  const again = await join(genesis, places[0] ?? (await place()), {
    seed: seeds[0],
    home,
    persistentPeers: [],
    watch: (application) => ({
      ...application,
      assertMayGoOn() {
        throw new UpgradeError("UPGRADE_NEEDED", REASON);
      },
    }),
  });
  await until(() => again.node.halts.length > 0, { timeoutMs: 30_000, what: "the same words" });
  expect([again.node.height, again.node.halts]).toEqual([last, [REASON]]);
  // It signed nothing here: what its key signed in the last blocks may be another process'.
  expect(again.node.consensus.hasSignedHere()).toBe(false);
  // Nor does it say that it waits for blocks, to who would wait with it.
  const { network, node } = again;
  expect([network.isCatchingUp(), node.consensus.isCatchingUp()]).toEqual([false, false]);
});

it("a validator that looks for its own key halts at the upgrade as any other", async () => {
  const { genesis, seeds } = validatorGenesis(1, { blockIntervalMs: 50 });
  last = Number.POSITIVE_INFINITY;
  const [where, seed] = [await place(), seeds[0]];
  const before = await join(genesis, where, { seed, persistentPeers: [], watch });
  await until(() => before.node.height >= 3, { timeoutMs: 60_000, what: "some blocks" });
  const home = await leave(before, true);
  // Its own signatures are in the last blocks, and no others come.
  const careful = { seed, home, persistentPeers: [], doubleSignCheckBlocks: 10 };
  const again = await join(genesis, where, {
    ...careful,
    watch: (application) => ({
      ...application,
      assertMayGoOn() {
        throw new UpgradeError("UPGRADE_NEEDED", REASON);
      },
    }),
  });
  await until(() => again.node.halts.length + again.faults.length > 0, {
    timeoutMs: 30_000,
    what: "the halt",
  });
  expect([again.node.halts, again.faults]).toEqual([[REASON], []]);
  // The program that goes on is told what to do, as nothing that it may wait for comes.
  await leave(again, true);
  const next = await join(genesis, where, careful);
  await until(() => next.faults.length > 0, { timeoutMs: 30_000, what: "the refusal" });
  expect(next.faults[0]).toContain("set consensus.double_sign_check_height to 0 for this start");
  await leave(next);
});
