/** Several wallets on a ledger that has lost its last commits, as a replica that took over may have. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { keccak256 } from "../../../chain/hashes.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import { Desk, destination, KEY, TOKEN } from "../recovery/desk.js";
import { addWallet } from "./second-wallet.js";

const SECOND_KEY = keccak256(Buffer.from("second hot wallet of the lost commits"));
const SECOND = privateKeyToAddress(SECOND_KEY);

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
  await addWallet(desk, SECOND);
});
afterEach(() => desk.close());

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
