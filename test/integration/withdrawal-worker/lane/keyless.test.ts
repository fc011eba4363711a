/** Lanes that cannot sign leave the wallet to whoever can, also where their rounds end with a fault. */
import { expect, it } from "@jest/globals";
import { NodeFault } from "../../../../rpc-client/errors.js";
import type { LaneContext } from "../../../../withdrawal-worker/lane/lane-context.js";
import type { Signer } from "../../../../withdrawal-worker/signers/signer-port.js";
import { type House, houseForEachTest } from "../../../helpers/exchange/house.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

/** A node that shows the chain, and tells no receipts while that is so. */
function withoutReceipts(isFailing = () => true): Pick<LaneContext, "node"> {
  const { node } = house.context();
  const receipts: LaneContext["node"]["receipts"] = async (hashes, options) => {
    if (isFailing()) throw new NodeFault("NODE_TIMEOUT", "no answer in time");
    return node.receipts(hashes, options);
  };
  return { node: { ...node, receipts } };
}

/** Who is asked for a signature does not answer. */
function silentSigner(): Signer {
  const { signer } = house.context();
  return {
    address: signer.address,
    review: (payments) => signer.review(payments),
    trouble: () => undefined,
    sign: async (intents) => intents.map(() => ({ kind: "unanswered", reason: "nobody is there" })),
  };
}

/** A payment of this worker is mined, and it has given the wallet back. */
async function minedPayment() {
  const payment = await house.acceptTo();
  const first = house.lane();
  await first.runRound(house.signal);
  expect((await house.read(payment.id)).status).toBe("broadcast");
  await house.database.query(`UPDATE hot_wallet SET lease_owner = NULL, lease_expires_at = NULL`);
  return payment;
}

it("one without the key whose node fails holds up nobody", async () => {
  const { id } = await minedPayment();
  house.chain.mine();
  const keyless = house.laneWith({ hasKey: () => false, ...withoutReceipts() });
  for (let round = 0; round < 2; round += 1) {
    await expect(keyless.runRound(house.signal)).rejects.toThrow("no answer in time");
    expect(keyless.status().holdsLease).toBe(false);
  }
  const paying = house.lane();
  for (let round = 0; round < 2; round += 1) await paying.runRound(house.signal);
  expect(paying.status().holdsLease).toBe(true);
  expect((await house.read(id)).status).toBe("settled");
});

it("one whose signer is silent, and whose node fails, holds up nobody either", async () => {
  await minedPayment();
  const next = await house.acceptTo();
  let isFailing = false;
  const silent = house.laneWith({
    signer: silentSigner(),
    ...withoutReceipts(() => isFailing),
  });
  await silent.runRound(house.signal);
  expect((await house.read(next.id)).status).toBe("slotted");
  house.chain.mine();
  isFailing = true;
  await expect(silent.runRound(house.signal)).rejects.toThrow("no answer in time");
  const paying = house.lane();
  await paying.runRound(house.signal);
  expect(paying.status().holdsLease).toBe(true);
  expect((await house.read(next.id)).status).toBe("broadcast");
});

it("one that can sign keeps the wallet over a fault of its node", async () => {
  await minedPayment();
  house.chain.mine();
  const lane = house.laneWith(withoutReceipts());
  await expect(lane.runRound(house.signal)).rejects.toThrow("no answer in time");
  const other = house.lane();
  await other.runRound(house.signal);
  expect([lane.status().holdsLease, other.status().holdsLease]).toEqual([true, false]);
});
