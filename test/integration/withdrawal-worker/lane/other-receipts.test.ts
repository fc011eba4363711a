/** A receipt is booked as it was recorded, and as both nodes show it: its place, its cost and its transfer. */
import { describe, expect, it } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import { parseHash32 } from "../../../../chain/hex.js";
import { registerTokens } from "../../../../ledger/assets/asset-registry.js";
import {
  customerAccount,
  parseCustomerId,
  walletAccount,
} from "../../../../ledger/journal/accounts.js";
import { postJournal } from "../../../../ledger/journal/journal.js";
import type { WithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import type { NodeReceipt } from "../../../../rpc-client/transaction-codec.js";
import type { Lane } from "../../../../withdrawal-worker/lane/lane.js";
import type { LaneContext } from "../../../../withdrawal-worker/lane/lane-context.js";
import type { ReceiptsAtHeight } from "../../../../withdrawal-worker/lane/receipts.js";
import { FAKE_CHAIN_ID, testAddress } from "../../../helpers/chains/fake-chain.js";
import {
  freshAddress,
  House,
  houseForEachTest,
  TOKEN,
  WALLET,
  WALLET_KEY,
} from "../../../helpers/exchange/house.js";
import { laneRules } from "../../../helpers/keys/signing.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

/** What one node says otherwise of a receipt than another one does. */
type Change = (receipt: NodeReceipt) => Partial<NodeReceipt>;

const CHANGES: readonly (readonly [string, Change])[] = [
  ["more gas", ({ gasUsed }) => ({ gasUsed: gasUsed + 1n })],
  [
    "a dearer price",
    ({ effectiveGasPriceAtoken: price }) => ({ effectiveGasPriceAtoken: price + 1n }),
  ],
  ["the block before", ({ height }) => ({ height: height - 1 })],
  ["another block of its height", () => ({ blockHash: parseHash32(`0x${"0c".repeat(32)}`) })],
];

function changedBy(change: Change, { byHash, ...rest }: ReceiptsAtHeight): ReceiptsAtHeight {
  const changed = [...byHash].map(
    ([hash, receipt]) => [hash, { ...receipt, ...change(receipt) }] as const,
  );
  return { ...rest, byHash: new Map(changed) };
}

/** A second node over the first one. */
function secondNode({ node }: LaneContext, change: Change): LaneContext["secondNode"] {
  return {
    ...node,
    receipts: async (hashes, options) => changedBy(change, await node.receipts(hashes, options)),
  };
}

/** One look is no proof; the second one freezes, and nothing has been booked by either. */
async function freezesAtTheSecondLook(lane: Lane, id: WithdrawalId): Promise<void> {
  await lane.runRound(house.signal);
  house.chain.mine();
  await lane.runRound(house.signal);
  expect([(await house.read(id)).status, await house.isFrozen()]).toEqual(["included", false]);
  await lane.runRound(house.signal);
  expect([(await house.read(id)).status, await house.isFrozen()]).toEqual(["frozen", true]);
  expect(await house.accountAtoken("expense:network_fee")).toBe(0n);
}

const held = { available: 99n * TOKEN, held: TOKEN };

describe.each(CHANGES)("a payment with %s", (_, change) => {
  it("by the second node's word alone is not booked", async () => {
    const { id } = await house.accept();
    const context = house.context();
    const lane = house.laneWith({ ...context, secondNode: secondNode(context, change) });
    await freezesAtTheSecondLook(lane, id);
    expect(await house.balance("alice")).toEqual(held);
  });

  it("than was recorded is not booked", async () => {
    const { id } = await house.accept();
    const context = house.context();
    const { node } = context;
    let isRecorded = false;
    const changing: LaneContext["node"] = {
      ...node,
      async receipts(hashes, options) {
        const truth = await node.receipts(hashes, options);
        if (isRecorded) return changedBy(change, truth);
        isRecorded = truth.byHash.size > 0;
        return truth;
      },
    };
    await freezesAtTheSecondLook(house.laneWith({ ...context, node: changing }), id);
    expect(await house.balance("alice")).toEqual(held);
  });
});

/** Alice has 100 units of the chain's token, and the hot wallet holds them. */
async function giveToken(contract: Address): Promise<void> {
  const { chain, ledger } = house;
  chain.token = contract;
  chain.mine([chain.tokenPayment(WALLET, { from: undefined, to: WALLET, units: 100n })]);
  const entry = { symbol: "GOLD", contractAddress: contract, decimals: 6 };
  await registerTokens(ledger.owner, [entry]);
  await ledger.owner.transaction((tx) =>
    postJournal(tx, {
      kind: "test.fund",
      idemKey: "fund:gold",
      effectiveHeight: 0,
      postings: [
        {
          asset: "GOLD",
          debit: walletAccount(WALLET),
          credit: customerAccount(parseCustomerId("alice")),
          amountUnits: 100n,
        },
      ],
    }),
  );
}

it("a token's payment whose transfer the second node does not show is not booked", async () => {
  const contract = testAddress(0x601d);
  await giveToken(contract);
  const context = house.context();
  const rules = laneRules({
    privateKey: WALLET_KEY,
    chainId: FAKE_CHAIN_ID,
    limits: { gasPriceCapAtoken: 1_000_000_000n, gasLimitMax: 1_000_000n },
    sql: house.database,
    contractOf: (asset) => (asset === "GOLD" ? contract : undefined),
  });
  const lane = house.laneWith({
    ...context,
    ...rules,
    secondNode: secondNode(context, () => ({ transfers: [] })),
  });
  const destination = freshAddress();
  const { id } = await house.accept({ asset: "GOLD", amountUnits: 7n, destination });
  await freezesAtTheSecondLook(lane, id);
  expect(house.chain.units.get(destination)).toBe(7n);
  const reason = `the two nodes disagree about the receipt of ${(await house.read(id)).hashes[0]}`;
  expect(lane.status().blockedReason).toContain(reason);
});
