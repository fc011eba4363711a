/** Several wallets on a ledger that has lost its last commits, as a replica that took over may have. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { keccak256 } from "../../../../chain/hashes.js";
import { privateKeyToAddress } from "../../../../chain/signing/account-key.js";
import type { Withdrawal } from "../../../../ledger/withdrawals/withdrawals.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import { createPatientClient, createPatientNode } from "../../../helpers/exchange/patient-node.js";
import { Desk, destination, KEY, TOKEN, WALLET } from "../../recovery/desk.js";
import { addWallet } from "../second-wallet.js";

const SECOND_KEY = keccak256(Buffer.from("second hot wallet of the lost commits"));
const SECOND = privateKeyToAddress(SECOND_KEY);

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
  await addWallet(desk, SECOND);
});
afterEach(() => desk.close());

/**
 * The ledger loses the payment of one coin by the second wallet, and has its request again.
 * @returns that, and the block of the payment
 */
async function loseOne(): Promise<{ readonly again: Withdrawal; readonly height: number }> {
  await desk.work(1, [desk.laneOf(KEY), desk.laneOf(SECOND_KEY)]);
  await desk.watch();
  const replica = await desk.backup();
  const wish = { key: "w", customer: "alice", to: destination(1), amountAtoken: TOKEN };
  const first = await desk.request(wish);
  await desk.work(1, [desk.laneOf(SECOND_KEY)]);
  const height = desk.chain.head;
  await desk.work(2, [desk.laneOf(SECOND_KEY)]);
  expect(await desk.read(first.id)).toMatchObject({ status: "settled", wallet: SECOND });
  await desk.useDatabase(replica);
  return { again: await desk.request(wish), height };
}

it("is not looked at on a node that lacks the newest blocks", async () => {
  const { again, height } = await loseOne();
  await desk.laneOf(KEY).runRound(desk.signal);
  await desk.work(1, [desk.laneOf(KEY), desk.laneOf(SECOND_KEY)]);
  const release = ["withdrawals", "release", "--accept-foreign", "--reason", "a quick look"];
  const refused = { code: "NODE_UNFIT" };
  desk.chain.isSyncing = true;
  await expect(desk.causeway(...release)).rejects.toMatchObject(refused);
  desk.chain.isSyncing = false;
  desk.chain.toldHead = height - 1;
  await expect(desk.causeway(...release)).rejects.toMatchObject(refused);
  for (const words of [
    ["tokens", "accept-code", "GOLD"],
    ["sweeps", "release", "1", "--reason", "a quick look"],
  ]) {
    await expect(desk.causeway(...words)).rejects.toMatchObject(refused);
  }
  await expect(
    desk.causeway("withdrawals", "release", again.id, "--not-paid"),
  ).rejects.toMatchObject(refused);
  await expect(
    desk.causeway("wallets", "retire", SECOND, "--reason", "gone", "--leave-behind"),
  ).rejects.toMatchObject(refused);
  expect(desk.laneOf(KEY).status().blockedReason).toContain(`wallet ${SECOND} is frozen`);
  expect((await desk.read(again.id)).status).toBe("accepted");
  desk.chain.toldHead = undefined;
  expect((await desk.causeway(...release)).text).toContain("1 withdrawals may be paid already");
});

it("is paid by no other wallet on the word of a late node", async () => {
  const { again, height } = await loseOne();
  const node = createPatientNode(createPatientClient(desk.chain.url), {
    chainId: FAKE_CHAIN_ID,
    genesisHash: desk.chain.genesisHash,
  });
  const late = desk.makeLane(
    WALLET,
    { signer: desk.rulesOf(KEY).signer, hasKey: () => true },
    {
      node: {
        ...node,
        view: async (wallet, options) => {
          const view = await node.view(wallet, options);
          if (wallet !== SECOND) return view;
          return { ...view, height: height - 1, nonce: 0n, pendingNonce: 0n };
        },
      },
    },
  );
  await expect(late.runRound(desk.signal)).rejects.toMatchObject({ code: "NODE_BEHIND" });
  expect((await desk.read(again.id)).status).toBe("accepted");
  desk.chain.mine();
  expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
});

it("pays from no wallet what another one has paid behind the ledger's back", async () => {
  const lanes = () => [desk.laneOf(KEY), desk.laneOf(SECOND_KEY)];
  await desk.work(1, lanes());
  await desk.watch();
  const replica = await desk.backup();
  const wish = { key: "w", customer: "alice", to: destination(1), amountAtoken: TOKEN };
  const first = await desk.request(wish);
  await desk.work(3, [desk.laneOf(SECOND_KEY)]);
  expect(await desk.read(first.id)).toMatchObject({ status: "settled", wallet: SECOND });

  // Nobody was told of an event behind it: the home has nothing to hold against it.
  await desk.useDatabase(replica);
  const again = await desk.request(wish);
  // The wallet that paid it looks last.
  await desk.laneOf(KEY).runRound(desk.signal);
  await desk.work(3, lanes());
  expect((await desk.read(again.id)).status).toBe("accepted");
  expect(desk.laneOf(KEY).status().blockedReason).toContain(`wallet ${SECOND} is frozen`);

  const release = ["withdrawals", "release", "--accept-foreign", "--reason", "lost commits"];
  await desk.causeway(...release);
  const [payment = ""] = desk.chain.blocks.flatMap(({ transactions }) =>
    transactions.flatMap(({ hash, signed }) => (signed?.from === SECOND ? [hash] : [])),
  );
  await desk.causeway("withdrawals", "release", again.id, "--paid-by", payment);
  const next = await desk.request({ ...wish, key: "next", to: destination(2) });
  await desk.work(4, lanes());
  await desk.watch();
  expect((await desk.read(again.id)).status).toBe("settled");
  expect((await desk.read(next.id)).status).toBe("settled");
  expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
  expect(await desk.availableAtoken("alice")).toBe(8n * TOKEN);
  expect(await desk.breaks()).toBe("");
});
