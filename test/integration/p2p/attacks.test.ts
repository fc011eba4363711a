/**
 * The attacks of `test/network/long/attacks.test.ts` in one process, each for a moment: validators
 * go on deciding, and whoever attacks is held up or let go. What it costs is looked at there.
 */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { setTimeout as pause } from "node:timers/promises";
import { ATTACKS, runAttack, STALLING, type Target } from "../../helpers/attackers.js";
import { validatorGenesis } from "../../helpers/chains/validator-node.js";
import { hashOf } from "./fakes.js";
import { join, leave, leaveAll, type Member, place, reach } from "./members.js";

const ATTACK_MS = 300;
const { genesis, seeds } = validatorGenesis(2, { blockIntervalMs: 200 });

let members: Member[];
let target: Target;
let comeBack: () => Promise<Member>;

beforeAll(async () => {
  const places = await Promise.all(seeds.map(() => place()));
  const persistentPeers = places.map(({ address }) => address);
  members = await Promise.all(
    places.map((one, index) => join(genesis, one, { seed: seeds[index], persistentPeers })),
  );
  const [first, other] = [members[0], members[1]];
  const [attacked] = places;
  if (first === undefined || other === undefined || attacked === undefined) throw new Error("two");
  target = {
    chainId: genesis.cosmosChainId,
    genesisHash: hashOf("genesis"),
    nodeId: attacked.key.nodeId,
    port: attacked.address.port,
    height: () => other.node.height + 1,
  };
  comeBack = async () => {
    const home = await leave(first, true);
    const back = await join(genesis, attacked, { seed: seeds[0], home, persistentPeers });
    members = [back, other];
    return back;
  };
  await reach(members, 5);
});

afterAll(leaveAll);

async function during(attack: (typeof ATTACKS)[number], work: () => Promise<void>): Promise<void> {
  const ending = new AbortController();
  const attacking = runAttack({ ...attack, identities: 2 }, target, ending.signal);
  try {
    await work();
  } finally {
    ending.abort(new Error("the attack is over"));
    await attacking;
  }
}

it.each(ATTACKS)("validators go on deciding under $name", async (attack) => {
  await during(attack, async () => {
    await pause(ATTACK_MS);
    await reach(members, (members[1]?.node.height ?? 0) + 2);
  });
  expect(members.flatMap(({ faults }) => faults)).toEqual([]);
});

it("a validator that comes back among liars about the height takes part again", async () => {
  await during(STALLING, async () => {
    const back = await comeBack();
    // Two validators decide only together.
    await reach(members, back.node.height + 3);
    expect(back.network.isCatchingUp()).toBe(false);
  });
});
