/** Several hot wallets: a key that is changed strands nothing, and each is watched for ever. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import { keccak256 } from "../../../chain/hashes.js";
import { hexToBytes } from "../../../chain/hex.js";
import { encryptKeystore } from "../../../chain/signing/keystore.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import { readPayers } from "../../../ledger/withdrawals/wallet-overview.js";
import type { WithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import { Desk, destination, KEY, TOKEN, WALLET } from "../recovery/desk.js";

const SECOND_KEY = keccak256(Buffer.from("second hot wallet of the rotation tests"));
const SECOND = privateKeyToAddress(SECOND_KEY);

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

let asked = 0;
async function ask(amountAtoken: bigint): Promise<WithdrawalId> {
  asked += 1;
  const { id } = await desk.request({
    key: `k${asked}`,
    customer: "alice",
    to: destination(asked),
    amountAtoken,
  });
  return id;
}

/** Status and paying wallet. */
async function stateOf(id: WithdrawalId): Promise<readonly [string, Address | undefined]> {
  const { status, wallet } = await desk.read(id);
  return [status, wallet];
}

/** The second wallet with 50 TOKEN, known and watched. */
async function addSecond(): Promise<void> {
  desk.writeKeystore("wallets/second.json", SECOND);
  await desk.restart();
  desk.pay([SECOND, 50n * TOKEN]);
  await desk.watch();
}

const both = () => [desk.laneOf(KEY), desk.laneOf(SECOND_KEY)];

const reconcileLines = async () => {
  const { code, text } = await desk.causeway("reconcile", "--json");
  const { lines }: { lines: { account: string; chainAtoken: string }[] } = JSON.parse(text);
  return { code, text, held: new Map(lines.map((line) => [line.account, line.chainAtoken])) };
};

describe("a keystore that was changed for another", () => {
  it("strands no request and no coin, and nobody's taking goes unnamed", async () => {
    const waiting = await ask((5n * TOKEN) / 2n);
    desk.writeKeystore("hot-wallet.json", SECOND);
    await desk.restart();
    desk.pay([SECOND, 50n * TOKEN]);
    await desk.watch();
    // The home has the second key alone.
    const lanes = [desk.laneOf(KEY, false), desk.laneOf(SECOND_KEY)];
    await desk.work(4, lanes);
    expect(await stateOf(waiting)).toEqual(["settled", SECOND]);
    await desk.watch();
    const { code, held } = await reconcileLines();
    expect(code).toBe(0);
    expect(held.get(`asset:wallet:${WALLET}`)).toBe((100n * TOKEN).toString());
    expect([...held.keys()]).toContain(`asset:wallet:${SECOND}`);

    // Somebody takes coins of the wallet that nobody works with any more.
    const takenAtoken = 1_234n * 10n ** 15n;
    const theft = desk.chain.payment(WALLET, destination(99), takenAtoken);
    desk.chain.mine([theft]);
    await desk.watch();
    const broken = await reconcileLines();
    expect(broken.code).toBe(1);
    expect(broken.text).toContain(theft.hash);
    const { text } = await desk.causeway("withdrawals", "list");
    const line = (wallet: Address) =>
      text.split("\n").find((each) => each.includes(toChecksumAddress(wallet)));
    expect(line(WALLET)).toMatch(new RegExp(`FROZEN.*${theft.hash}.*${takenAtoken} atoken`));
    expect(line(SECOND)).toMatch(
      new RegExp(`goes on, but it pays nothing new: wallet ${WALLET} is frozen: .*${theft.hash}`),
    );
    // What was taken may be what is asked for next: nobody pays before a person has looked.
    const next = await ask(TOKEN);
    await desk.work(4, lanes);
    expect(await stateOf(next)).toEqual(["accepted", undefined]);
    await desk.causeway("withdrawals", "release", "--accept-foreign", "--reason", "a theft");
    await desk.work(4, lanes);
    expect(await stateOf(next)).toEqual(["settled", SECOND]);
  });
});

describe("a wallet that is added", () => {
  it("has its past in suspense, and its account takes over nobody's", async () => {
    desk.pay([SECOND, 7n * TOKEN]);
    await desk.watch();
    desk.writeKeystore("wallets/second.json", SECOND);
    await desk.restart();
    await desk.watch();
    const rows = await desk.database.query(
      `SELECT kind, debit, credit, amount_units::text AS amount
         FROM journal_entry e JOIN posting p ON p.journal_id = e.id WHERE kind = 'wallet.past'`,
    );
    expect(rows).toEqual([
      {
        kind: "wallet.past",
        debit: `asset:wallet:${SECOND}`,
        credit: "liability:suspense",
        amount: (7n * TOKEN).toString(),
      },
    ]);
    expect((await reconcileLines()).code).toBe(0);
    await desk.restart();
    await desk.watch();
    expect((await reconcileLines()).code).toBe(0);
  });

  it("shares the payments, each paid once, by free balance and open nonces", async () => {
    await addSecond();
    desk.leaseMs = 60_000;
    await desk.restart();
    await desk.work(1, both());
    const payers = await readPayers(desk.database);
    expect(payers.map(({ wallet }) => wallet)).toEqual([WALLET, SECOND]);
    const ids: WithdrawalId[] = [];
    for (let count = 0; count < 12; count += 1) ids.push(await ask(TOKEN / 2n));
    await desk.work(5, both());
    const states = await Promise.all(ids.map(stateOf));
    expect(states.map(([status]) => status)).toEqual(ids.map(() => "settled"));
    const paidBy = (payer: Address) => states.filter(([, wallet]) => wallet === payer).length;
    // 100 TOKEN against 50: two of three, as far as two lanes at once agree.
    expect(paidBy(WALLET)).toBeGreaterThan(paidBy(SECOND));
    expect(paidBy(SECOND)).toBeGreaterThan(0);
    await desk.watch();
    expect((await reconcileLines()).code).toBe(0);
  });

  it("is never paid by a customer's withdrawal, asked for before or after", async () => {
    const before = await desk.request({
      key: "own",
      customer: "alice",
      to: SECOND,
      amountAtoken: TOKEN,
    });
    await addSecond();
    const refused = desk.request({
      key: "own-2",
      customer: "alice",
      to: SECOND,
      amountAtoken: TOKEN,
    });
    await expect(refused).rejects.toThrow("OWN_WALLET");
    await desk.work(2, both());
    expect(await desk.read(before.id)).toMatchObject({ status: "rejected", nonce: undefined });
  });
});

describe("a wallet that is drained", () => {
  it("finishes its own and takes nothing new: others pay what was accepted", async () => {
    await addSecond();
    const begun = await ask(TOKEN);
    // The other wallet is not held yet: this one takes the nonce and signs.
    await desk.laneOf(KEY).runRound(desk.signal);
    expect(await stateOf(begun)).toEqual(["broadcast", WALLET]);
    const waiting = await ask(TOKEN);
    const word = ["--reason", "rotation drill", "--operator", "ann"];
    await expect(desk.causeway("wallets", "drain", "hot-wallet", ...word)).rejects.toThrow(
      '"hot-wallet" is no address of a hot wallet (0x and 40 hex digits): see causeway wallets list.',
    );
    expect((await desk.causeway("wallets", "drain", WALLET, ...word)).code).toBe(0);
    await desk.work(5, both());
    expect(await stateOf(begun)).toEqual(["settled", WALLET]);
    expect(await stateOf(waiting)).toEqual(["settled", SECOND]);
    const changes = await desk.database.query(
      `SELECT former, status, reason, operator FROM wallet_change WHERE address = $1 ORDER BY id`,
      [WALLET],
    );
    expect(changes.at(-1)).toEqual({
      former: "active",
      status: "draining",
      reason: "rotation drill",
      operator: "ann",
    });
  });

  it("gets no new nonce even from a program that ignores the rule", async () => {
    await desk.causeway("wallets", "drain", WALLET, "--reason", "drill");
    const id = await ask(TOKEN);
    await desk.database.query(
      `INSERT INTO nonce_slot (wallet, nonce, withdrawal_id, gas_limit, gas_price_atoken,
         reserved_atoken) VALUES ($1, 0, $2, 21000, 1, 1)`,
      [WALLET, id],
    );
    const step = desk.database.query(`UPDATE withdrawal SET status = 'slotted' WHERE id = $1`, [
      id,
    ]);
    await expect(step).rejects.toThrow("no nonce of an active wallet");
  });

  it("is retired when it is empty, or with a word that it is not, and is watched on", async () => {
    await addSecond();
    const word = ["--reason", "the key is old"];
    const retire = () => desk.causeway("wallets", "retire", WALLET, ...word);
    await expect(retire()).rejects.toThrow("only draining ones");
    await desk.causeway("wallets", "drain", WALLET, ...word);
    await expect(retire()).rejects.toThrow("has 0 open nonces and");
    const left = await desk.causeway("wallets", "retire", WALLET, "--leave-behind", ...word);
    expect(left.text).toContain("is retired");
    // It signs nothing, and its coins stay on the books.
    const id = await ask(TOKEN);
    await desk.work(4, both());
    expect(await stateOf(id)).toEqual(["settled", SECOND]);
    desk.pay([WALLET, 3n]);
    const theft = desk.chain.payment(WALLET, destination(98), 5n);
    desk.chain.mine([theft]);
    await desk.watch();
    const { code, text } = await reconcileLines();
    expect(code).toBe(1);
    expect(text).toContain(theft.hash);
    const listed = await desk.causeway("wallets", "list", "--json");
    const { wallets } = JSON.parse(listed.text);
    expect(wallets[0]).toMatchObject({ address: WALLET, status: "retired" });
    expect(wallets[0].freeze).toMatchObject({ frozen: true });
    expect(wallets[0].freeze.reason).toContain(theft.hash);
    expect(wallets[1].freeze).toMatchObject({ frozen: false });
  });
});

it("leaves no keystore of a customer's address in the home: every process would take it for a wallet", async () => {
  // Of the deposit addresses' seed, which every tool for contracts brings along.
  const key = hexToBytes("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
  const [keystore, passphrase] = [join(desk.home, "own.json"), join(desk.home, "own.passphrase")];
  writeFileSync(keystore, await encryptKeystore(key, "of a test"), { mode: 0o600 });
  writeFileSync(passphrase, "of a test\n", { mode: 0o600 });
  const files = ["--keystore", keystore, "--passphrase-file", passphrase];
  await expect(
    desk.causeway("wallets", "add", "--label", "own", "--reason", "a test", ...files),
  ).rejects.toMatchObject({ code: "OWN_ADDRESS" });
  expect(existsSync(join(desk.home, "config", "wallets", "own.json"))).toBe(false);
  await desk.restart();
});

it("leaves no second file of a wallet in the home: no worker would start on it any more", async () => {
  const [keystore, passphrase] = [join(desk.home, "own.json"), join(desk.home, "own.passphrase")];
  writeFileSync(keystore, await encryptKeystore(KEY, "of a test"), { mode: 0o600 });
  writeFileSync(passphrase, "of a test\n", { mode: 0o600 });
  const files = ["--keystore", keystore, "--passphrase-file", passphrase];
  await expect(
    desk.causeway("wallets", "add", "--label", "again", "--reason", "a test", ...files),
  ).rejects.toMatchObject({ code: "USAGE", message: expect.stringContaining("hot-wallet.json") });
  expect(existsSync(join(desk.home, "config", "wallets", "again.json"))).toBe(false);
  await desk.restart();
  expect((await desk.causeway("wallets", "list")).code).toBe(0);
});

it("makes no key in a home whose worker would never open it, and says where one is made", async () => {
  const add = ["wallets", "add", "--label", "next", "--reason", "a test"];
  await expect(desk.causeway(...add)).rejects.toMatchObject({
    code: "USAGE",
    message: expect.stringContaining(
      "docker compose run --rm --no-deps withdrawal-worker dist/cli/main.js wallets add",
    ),
  });
  expect(existsSync(join(desk.home, "config", "wallets"))).toBe(false);
  const listed = await desk.causeway("wallets", "list", "--json");
  expect(JSON.parse(listed.text).wallets).toHaveLength(1);
});

it("shows a wallet that no process has registered yet to programs as to persons", async () => {
  desk.writeKeystore("wallets/new.json", SECOND);
  const list = ["wallets", "list"];
  expect((await desk.causeway(...list)).text).toMatch(/^0x.* waits for a first start$/m);
  const { wallets, waiting } = JSON.parse((await desk.causeway(...list, "--json")).text);
  expect(wallets.map(({ address }: { address: string }) => address)).toEqual([WALLET]);
  expect(waiting).toEqual([{ address: SECOND, label: "new" }]);
});

it("leaves no passphrase of its own beside a file that has the name already", async () => {
  // As docs/rotation.md leaves one for a wallet whose keystore is kept elsewhere.
  desk.writeKeystore("wallets/former.json", SECOND);
  const own = await encryptKeystore(KEY, "of a test");
  writeFileSync(join(desk.home, "config", "hot-wallet.json"), own, { mode: 0o600 });
  const add = ["wallets", "add", "--label", "former", "--reason", "a test"];
  await expect(desk.causeway(...add)).rejects.toMatchObject({
    code: "USAGE",
    message: expect.stringContaining("former.json is there already"),
  });
  expect(existsSync(join(desk.home, "config", "wallets", "former.passphrase"))).toBe(false);
});
