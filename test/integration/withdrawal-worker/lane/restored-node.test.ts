/** Nodes that do not keep all blocks: made anew from a snapshot, or pruned. A receipt may be missing there. */
import { expect, it } from "@jest/globals";
import { toQuantity } from "../../../../chain/hex.js";
import { Lane } from "../../../../withdrawal-worker/lane/lane.js";
import { type House, houseForEachTest } from "../../../helpers/exchange/house.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

async function rounds(lane: Lane, count = 4): Promise<void> {
  for (let round = 0; round < count; round += 1) {
    await lane.runRound(house.signal);
    house.clock.ms += 2_000;
  }
}

/** So many blocks, of two seconds each. */
function mine(count: number): void {
  for (let block = 0; block < count; block += 1) house.chain.mine();
}

/** Blocks are there from one height on and states from another one; of what is mined by now no receipts are. */
function keepFrom(blocks: number, state = blocks): void {
  const { chain } = house;
  const { head } = chain;
  const from = (oldest: number) => ({ oldestBlock: toQuantity(oldest) });
  const mined = new Set(
    chain.blocks.flatMap(({ transactions }) => transactions.map(({ hash }) => String(hash))),
  );
  house.chain.override = (method, [what]) => {
    if (method === "eth_getTransactionReceipt" && mined.has(String(what))) return { result: null };
    if (method !== "eth_capabilities") return undefined;
    return { result: { state: from(state), receipts: from(blocks), blocks: from(blocks) } };
  };
  expect(blocks).toBeLessThanOrEqual(head);
}

/** Of the same worker each time. */
const open = () => new Lane(house.context(), "worker");

const statusOf = async ({ id }: Awaited<ReturnType<House["acceptTo"]>>) =>
  (await house.read(id)).status;

it.each([
  { name: "the worker goes on", isNew: false },
  { name: "the worker starts anew", isNew: true },
])(
  "freezes nothing, says what is missing, and settles by one that has it: $name",
  async ({ isNew }) => {
    const { chain } = house;
    mine(40);
    const payment = await house.acceptTo();
    const first = open();
    await rounds(first, 1);
    mine(6);
    keepFrom(chain.head - 1);
    const lane = isNew ? open() : first;
    await rounds(lane);
    expect(await statusOf(payment)).toBe("broadcast");
    expect(lane.status().isFrozen).toBe(false);
    expect(lane.status().blockedReason).toMatch(
      /^the node keeps no blocks before 2023-11-14T.*: ask a node that keeps the blocks since 2023-/,
    );
    // Others go on meanwhile, and neither their ends nor another worker change what the node can say.
    const next = await house.acceptTo();
    await rounds(lane, 1);
    mine(1);
    await rounds(lane, 3);
    expect(await statusOf(next)).toBe("settled");
    const second = open();
    await rounds(second);
    expect(await statusOf(payment)).toBe("broadcast");
    expect(second.status().isFrozen).toBe(false);
    chain.override = () => undefined;
    await rounds(second);
    expect(await statusOf(payment)).toBe("settled");
    expect(second.status().blockedReason).toBeUndefined();
  },
);

it.each([
  { name: "blocks since before it was signed", blocks: (head: number) => head - 38, isNew: false },
  { name: "the same, by a worker that starts", blocks: (head: number) => head - 38, isNew: true },
  { name: "all blocks, and no states", blocks: () => 0, isNew: false },
])("freezes for a stranger's transaction where the node keeps $name", async ({ blocks, isNew }) => {
  const { chain } = house;
  mine(40);
  const payment = await house.acceptTo();
  const first = open();
  await rounds(first, 1);
  mine(1);
  keepFrom(blocks(chain.head), chain.head);
  const lane = isNew ? open() : first;
  await rounds(lane);
  expect(await statusOf(payment)).toBe("frozen");
  expect(lane.status().isFrozen).toBe(true);
  // Nothing unfreezes it by itself.
  keepFrom(chain.head - 1);
  await rounds(lane);
  expect(await statusOf(payment)).toBe("frozen");
});

it.each([
  { what: "has no method for it", code: -32601 },
  { what: "refuses the method in words of its own", code: -32004 },
])(
  "freezes as ever by a node that does not say what it keeps: one that $what",
  async ({ code }) => {
    const { chain } = house;
    mine(40);
    const payment = await house.acceptTo();
    const lane = open();
    await rounds(lane, 1);
    mine(1);
    keepFrom(chain.head);
    const without = chain.override;
    chain.override = (method, params) =>
      method === "eth_capabilities"
        ? { error: { code, message: "method not allowed" } }
        : without(method, params);
    await rounds(lane);
    expect(await statusOf(payment)).toBe("frozen");
    expect(lane.status().isFrozen).toBe(true);
  },
);

it("freezes where nothing was signed for the nonce, whatever the node keeps", async () => {
  const { chain } = house;
  const { signer } = house.context();
  const payment = await house.acceptTo();
  const silent = new Lane(
    {
      ...house.context(),
      signer: {
        address: signer.address,
        review: (payments) => signer.review(payments),
        trouble: () => undefined,
        sign: async (intents) =>
          intents.map(() => ({ kind: "unanswered" as const, reason: "nobody is there" })),
      },
    },
    "worker",
  );
  await rounds(silent, 1);
  expect(await statusOf(payment)).toBe("slotted");
  chain.nonces.set(signer.address, 1n);
  mine(1);
  keepFrom(chain.head);
  await rounds(silent);
  expect(await statusOf(payment)).toBe("frozen");
});

it("freezes by a node with all blocks alone what has a transaction that was taken over from the chain", async () => {
  const { chain } = house;
  mine(40);
  const payment = await house.acceptTo();
  const lane = open();
  await rounds(lane, 1);
  await house.ledger.owner.query(
    `INSERT INTO withdrawal_attempt (slot_id, n, adopted, hash, gas_limit, gas_price_atoken)
     SELECT id, 1, true, $1, 21000, 1 FROM nonce_slot`,
    [`0x${"ad".repeat(32)}`],
  );
  mine(1);
  keepFrom(chain.head - 38);
  await rounds(lane);
  expect(await statusOf(payment)).toBe("broadcast");
  expect(lane.status().blockedReason).toContain("ask a node that keeps all blocks");
  keepFrom(0);
  await rounds(lane);
  expect(await statusOf(payment)).toBe("frozen");
});
