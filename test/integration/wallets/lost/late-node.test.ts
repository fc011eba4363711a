/**
 * A node that has not come to what another wallet has paid: nothing new gets a nonce by it, and nothing ends.
 * What has its nonce goes on.
 */
import { beforeEach, expect, it } from "@jest/globals";
import { keccak256 } from "../../../../chain/hashes.js";
import { privateKeyToAddress } from "../../../../chain/signing/account-key.js";
import { setKillSwitch } from "../../../../ledger/kill-switch/kill-switch.js";
import { createHotWallet } from "../../../../ledger/wallets/wallet-lease.js";
import { NodeFault } from "../../../../rpc-client/errors.js";
import { SqlError } from "../../../../runtime/sql/sql-errors.js";
import type { Lane } from "../../../../withdrawal-worker/lane/lane.js";
import { House, houseForEachTest, WALLET } from "../../../helpers/exchange/house.js";
import { registerTestWallets } from "../../../helpers/services/ledger.js";

const SECOND = privateKeyToAddress(keccak256(Buffer.from("second hot wallet of the late node")));

let house: House;
/** This lane's node lacks the newest block, in which the other wallet has paid. */
let isLate: boolean;
/** The lane dies once, with what it was to do next. */
let dies: "behind the slots" | "before the sending" | undefined;
let lane: Lane;

houseForEachTest((opened) => {
  house = opened;
});

beforeEach(async () => {
  isLate = false;
  dies = undefined;
  await registerTestWallets(house.database, SECOND);
  await createHotWallet(house.database, { wallet: SECOND, firstNonce: 0n });
  lane = makeLane();
});

function makeLane(): Lane {
  const context = house.context();
  const { node, ledger } = context;
  return house.laneWith({
    ...context,
    node: {
      ...node,
      view: async (...asked) => {
        const view = await node.view(...asked);
        return isLate ? { ...view, height: view.height - 1 } : view;
      },
      send: async (...asked) => {
        if (dies !== "before the sending") return node.send(...asked);
        dies = undefined;
        throw new NodeFault("NODE_UNREACHABLE", "nobody listens", { retriable: true });
      },
    },
    ledger: {
      ...ledger,
      takeSlots: async (...asked) => {
        const taken = await ledger.takeSlots(...asked);
        if (dies !== "behind the slots") return taken;
        dies = undefined;
        throw new SqlError("DATABASE_UNAVAILABLE", "gone", { retriable: true });
      },
    },
  });
}

/** A payment that has its nonce, and a block in which the other wallet has paid since. */
async function payAndDie(when: NonNullable<typeof dies>) {
  const given = await house.accept();
  dies = when;
  await expect(lane.runRound(house.signal)).rejects.toThrow();
  expect(dies).toBeUndefined();
  house.chain.mine();
  await house.database.query(`UPDATE hot_wallet SET settled_height = $2 WHERE wallet = $1`, [
    SECOND,
    house.chain.head,
  ]);
  isLate = true;
  house.clock.ms += 2_000;
  return given;
}

const statusOf = async ({ id }: Awaited<ReturnType<House["accept"]>>) =>
  (await house.read(id)).status;

it("signs and sends what has its nonce, and gives no other one", async () => {
  const given = await payAndDie("behind the slots");
  expect(await statusOf(given)).toBe("slotted");
  const due = await house.accept();
  await expect(lane.runRound(house.signal)).rejects.toMatchObject({ code: "NODE_BEHIND" });
  expect([await statusOf(given), await statusOf(due)]).toEqual(["broadcast", "accepted"]);
  isLate = false;
  await lane.runRound(house.signal);
  expect(await statusOf(due)).toBe("broadcast");
  expect((await house.read(given.id)).wallet).toBe(WALLET);
});

it("ends nothing that is too late, and sends what is signed, whatever else is stopped", async () => {
  const given = await payAndDie("before the sending");
  expect(await statusOf(given)).toBe("signed");
  const late = await house.accept({ expiresAtMs: Date.now() - 60_000 });
  await setKillSwitch(house.ledger.owner, { level: "stop-sign", reason: "drill", by: "tests" });
  await expect(lane.runRound(house.signal)).rejects.toMatchObject({ code: "NODE_BEHIND" });
  expect([await statusOf(given), await statusOf(late)]).toEqual(["broadcast", "accepted"]);
  isLate = false;
  await lane.runRound(house.signal);
  expect(await statusOf(late)).toBe("cancelled");
});
