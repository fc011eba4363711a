/** More transactions that nobody asked for than one release names: none of them is let by unseen. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { keccak256 } from "../../../../chain/hashes.js";
import { privateKeyToAddress } from "../../../../chain/signing/account-key.js";
import { DOUBTFUL_AT_A_TIME } from "../../../../ledger/withdrawals/foreign-transactions.js";
import { freezeSigning, readFreeze } from "../../../../ledger/requests/signing-freeze.js";
import { Desk, destination, KEY, TOKEN, WALLET } from "../../recovery/desk.js";
import { addWallet, payByHand } from "../second-wallet.js";

/** One more than a release names. */
const COUNT = 1_001;

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

const hashAt = (index: number) => `0x${index.toString(16).padStart(64, "0")}`;

const frozen = async () => (await readFreeze(desk.database, WALLET)).frozen;

/** As the watcher has found them; the last one may have paid four coins to an address. */
async function findOutflows(): Promise<void> {
  const hashes = Array.from({ length: COUNT }, (_, index) => hashAt(index + 1));
  await desk.database.query(
    `INSERT INTO foreign_outflow (wallet, tx_hash, amount_units, fee_atoken, height, asset)
     SELECT $1, hash, 7, 21000, 1, 'TOKEN' FROM unnest($2::text[]) AS hash`,
    [WALLET, hashes],
  );
  await desk.database.query(
    `INSERT INTO possible_payment (tx_hash, destination, contract, amount_units)
     VALUES ($1, $2, '', $3::numeric)`,
    [hashAt(COUNT), destination(1), (4n * TOKEN).toString()],
  );
  await freezeSigning(desk.database, WALLET, "somebody else has paid");
}

it("signs nothing before all are acknowledged, and pays no request that the last one may have paid", async () => {
  const fields = { customer: "alice", to: destination(1), amountAtoken: 4n * TOKEN };
  const { id } = await desk.request({ key: "w", ...fields });
  await findOutflows();
  const named = Array.from({ length: COUNT - 1 }, (_, index) => hashAt(index + 1));
  const words = ["--acknowledge", ...named, "--reason", "payments by hand"];
  const first = await desk.causeway("withdrawals", "release", ...words);
  expect([first.code, await frozen()]).toEqual([1, true]);
  expect(first.text).toContain(hashAt(COUNT));
  await desk.work(3);
  expect(desk.paidAtoken(destination(1))).toBe(0n);
  await desk.causeway("withdrawals", "release", "--accept-foreign");
  expect(await frozen()).toBe(false);
  await desk.work(3);
  expect((await desk.read(id)).status).toBe("frozen");
  expect(desk.paidAtoken(destination(1))).toBe(0n);
});

it("are acknowledged all by the word that is about all", async () => {
  const fields = { customer: "alice", to: destination(1), amountAtoken: 4n * TOKEN };
  const { id } = await desk.request({ key: "w", ...fields });
  await findOutflows();
  await desk.causeway("withdrawals", "release", "--accept-foreign");
  expect(await frozen()).toBe(false);
  await desk.work(3);
  expect((await desk.read(id)).status).toBe("frozen");
  expect(desk.paidAtoken(destination(1))).toBe(0n);
});

const SECOND_KEY = keccak256(Buffer.from("second hot wallet of many outflows"));
const SECOND = privateKeyToAddress(SECOND_KEY);

it("are all looked at before a request whose nonce is used up gets a second one", async () => {
  await addWallet(desk, SECOND);
  const fields = { customer: "alice", to: destination(1), amountAtoken: 4n * TOKEN };
  desk.chain.wireFault = (methods) =>
    methods.includes("eth_sendRawTransaction") ? "reset-before" : undefined;
  const { id } = await desk.request({ key: "w", ...fields });
  await expect(desk.lane().runRound(desk.signal)).rejects.toThrow();
  desk.chain.wireFault = () => undefined;
  expect((await desk.read(id)).status).toBe("signed");
  payByHand(desk, KEY, 0n, destination(7));
  for (let nonce = 0n; nonce < DOUBTFUL_AT_A_TIME; nonce++) {
    payByHand(desk, SECOND_KEY, nonce, destination(7));
  }
  const paid = payByHand(desk, SECOND_KEY, BigInt(DOUBTFUL_AT_A_TIME), destination(1));
  desk.chain.mine();
  await desk.watch();
  await desk.work(4);
  expect((await desk.read(id)).status).toBe("frozen");
  const released = await desk.causeway("withdrawals", "release", id);
  expect([released.code, released.text]).toEqual([1, expect.stringContaining(paid)]);
  expect((await desk.read(id)).status).toBe("frozen");
});
