/** What one worker saw of a wallet before another had it: with what it sees behind that it agrees on nothing. */
import { expect, it } from "@jest/globals";
import { parseHash32 } from "../../../../chain/hex.js";
import type { WithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import type { Lane } from "../../../../withdrawal-worker/lane/lane.js";
import type { LaneContext } from "../../../../withdrawal-worker/lane/lane-context.js";
import type { ReceiptsAtHeight } from "../../../../withdrawal-worker/lane/receipts.js";
import { House, houseForEachTest, statuses } from "../../../helpers/exchange/house.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

/** Longer than any patience of a lane. */
const LONG_MS = 3_600_000;

const loseLease = () =>
  house.ledger.owner.query(`UPDATE hot_wallet SET lease_expires_at = now() - interval '1 s'`);

/** A lane that books nothing, as its node shows no blocks. */
function idleLane() {
  const context = house.context();
  const headers: LaneContext["node"]["headers"] = async (heights) => heights.map(() => undefined);
  return house.laneWith({ ...context, node: { ...context.node, headers } });
}

/** Another worker has the wallet for one round, a long time passes, and the first one comes again. */
async function anothersTurn(): Promise<void> {
  await loseLease();
  await idleLane().runRound(house.signal);
  house.clock.ms += LONG_MS;
  await loseLease();
}

/** A mined payment looks odd before another worker's turn and behind it: neither is the second time. */
async function settlesOnceSound(id: WithdrawalId, lane: Lane, makeSound: () => void) {
  await lane.runRound(house.signal);
  house.chain.mine();
  await lane.runRound(house.signal);
  expect((await house.read(id)).status).toBe("included");
  await anothersTurn();
  await lane.runRound(house.signal);
  expect([await house.isFrozen(), (await house.read(id)).status]).toEqual([false, "included"]);
  makeSound();
  await lane.runRound(house.signal);
  expect((await house.read(id)).status).toBe("settled");
}

it("a block that looked changed has to look so twice again", async () => {
  const { id } = await house.accept();
  const context = house.context();
  let isOdd = true;
  const lane = house.laneWith({
    ...context,
    node: {
      ...context.node,
      headers: async (heights, options) => {
        const found = await context.node.headers(heights, options);
        const hash = parseHash32(`0x${"0c".repeat(32)}`);
        return isOdd ? found.map((header) => header && { ...header, hash }) : found;
      },
    },
  });
  await settlesOnceSound(id, lane, () => {
    isOdd = false;
  });
});

it.each<readonly [string, (truth: ReceiptsAtHeight) => ReceiptsAtHeight]>([
  ["that the second node lacked has to lack twice", (truth) => ({ ...truth, byHash: new Map() })],
  ["that the two nodes showed otherwise has to be so twice", failing],
])("a receipt %s again", async (_, oddly) => {
  const { id } = await house.accept();
  const context = house.context();
  let isOdd = true;
  const secondNode: LaneContext["secondNode"] = {
    ...context.node,
    receipts: async (hashes, options) => {
      const truth = await context.node.receipts(hashes, options);
      return isOdd ? oddly(truth) : truth;
    },
  };
  const lane = house.laneWith({ ...context, secondNode });
  await settlesOnceSound(id, lane, () => {
    isOdd = false;
  });
});

/** All payments failed. */
function failing({ byHash, ...rest }: ReceiptsAtHeight): ReceiptsAtHeight {
  const failed = [...byHash].map(([hash, receipt]) => [hash, { ...receipt, status: 0 }] as const);
  return { ...rest, byHash: new Map(failed) };
}

it("a nonce is waited for from the first look on", async () => {
  const { id, to } = await house.acceptTo();
  house.chain.unmined.add(to);
  const lane = house.lane();
  await house.pass(lane, { rounds: 4, stepMs: 1_000 });
  await anothersTurn();
  await house.pass(lane, { rounds: 4, stepMs: 1_000 });
  const waiting = await house.read(id);
  expect([statuses(waiting).at(-1), waiting.hashes.length]).toEqual(["broadcast", 1]);
  house.chain.unmined.clear();
  house.chain.mine();
  for (let round = 0; round < 2; round += 1) await lane.runRound(house.signal);
  expect((await house.read(id)).status).toBe("settled");
});
