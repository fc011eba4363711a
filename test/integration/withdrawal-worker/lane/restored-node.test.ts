/** A node that was made anew from a snapshot: it has no receipts of what was mined before it began. */
import { expect, it } from "@jest/globals";
import { toQuantity } from "../../../../chain/hex.js";
import { Lane } from "../../../../withdrawal-worker/lane/lane.js";
import {
  freshAddress,
  type House,
  houseForEachTest,
  TOKEN,
} from "../../../helpers/exchange/house.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

async function rounds(lane: ReturnType<House["lane"]>, count = 4): Promise<void> {
  for (let round = 0; round < count; round += 1) {
    await lane.runRound(house.signal);
    house.clock.ms += 2_000;
  }
}

/** Blocks and states are there from this height on; receipts of older blocks are not. */
function keepFrom(oldest: number): void {
  const oldestBlock = { oldestBlock: toQuantity(oldest) };
  house.chain.override = (method) => {
    if (method === "eth_getTransactionReceipt") return { result: null };
    if (method !== "eth_capabilities") return undefined;
    return { result: { state: oldestBlock, blocks: oldestBlock } };
  };
}

/** Of the same worker each time. */
const open = () => new Lane(house.context(), "worker");

async function accept() {
  const to = freshAddress();
  return house.accept({ destination: to, destinationText: to, amountUnits: TOKEN });
}

it.each([
  { name: "the worker goes on", isNew: false },
  { name: "the worker starts anew", isNew: true },
])("freezes nothing, says so, and settles by one that has them: $name", async ({ isNew }) => {
  const { chain } = house;
  const { id } = await accept();
  const first = open();
  await rounds(first, 1);
  for (let block = 0; block < 6; block += 1) chain.mine();
  keepFrom(chain.head);
  const lane = isNew ? open() : first;
  await rounds(lane);
  expect((await house.read(id)).status).toBe("broadcast");
  expect(lane.status().isFrozen).toBe(false);
  expect(lane.status().blockedReason).toContain("the node does not keep the blocks since");
  chain.override = () => undefined;
  await rounds(lane);
  expect((await house.read(id)).status).toBe("settled");
  expect(lane.status().blockedReason).toBeUndefined();
});

it.each([
  { name: "the worker goes on", isNew: false },
  { name: "the worker starts anew", isNew: true },
])(
  "still freezes where the node has all blocks since the nonce was unused: $name",
  async ({ isNew }) => {
    const { chain } = house;
    // Nothing was ever settled: what the ledger has of it is older than all blocks that the node keeps.
    for (let block = 0; block < 6; block += 1) chain.mine();
    const { id } = await accept();
    const first = open();
    await rounds(first, 1);
    const { head } = chain;
    chain.mine();
    keepFrom(head + 1);
    const lane = isNew ? open() : first;
    await rounds(lane);
    expect((await house.read(id)).status).toBe("frozen");
    expect(lane.status().isFrozen).toBe(true);
  },
);
