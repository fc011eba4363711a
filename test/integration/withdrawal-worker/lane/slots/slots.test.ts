/** The commits that give nonces and store signatures: what each of them refuses by itself. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Hash32 } from "../../../../../chain/hex.js";
import {
  readLiveSlots,
  storeAttempts,
  sumOpenSlots,
  takeSlots,
} from "../../../../../ledger/withdrawals/nonce-slots.js";
import { freezeSigning, releaseSigning } from "../../../../../ledger/requests/signing-freeze.js";
import {
  acquireLease,
  createHotWallet,
  readHotWallet,
  releaseLease,
  type WalletLease,
} from "../../../../../ledger/wallets/wallet-lease.js";
import { freezeWithdrawals } from "../../../../../ledger/withdrawals/slot-outcomes.js";
import type { WithdrawalRequest } from "../../../../../ledger/withdrawals/withdrawals.js";
import type { SqlDatabase } from "../../../../../runtime/sql/sql.js";
import { freshAddress, House, TOKEN, WALLET } from "../../../../helpers/exchange/house.js";
import { InterruptedSql } from "../../../../helpers/faults/interrupted-sql.js";
import { registerTestWallets } from "../../../../helpers/services/ledger.js";
import { PERMISSIVE } from "../../../../helpers/keys/signing.js";

/** More than any test spends. */
const RULES = { feePerDayAtoken: TOKEN, policyHash: PERMISSIVE.hash };

let house: House;
let lease: WalletLease;

beforeAll(async () => {
  house = await House.withAlice();
  await createHotWallet(house.database, { wallet: WALLET, firstNonce: 5n });
  const taken = await acquireLease(house.database, {
    wallet: WALLET,
    owner: randomUUID(),
    leaseMs: 60_000,
  });
  if (taken === undefined) throw new Error("no lease");
  lease = taken;
});

afterAll(async () => {
  await house.close();
});

const rules = {
  budget: {
    balanceAtoken: 1_000n * TOKEN,
    balanceHeight: 10,
    nonce: 5n,
    maxLiveSlots: 100,
    maxCodeGas: 4_000_000n,
    feePerDayAtoken: TOKEN,
  },
  policy: PERMISSIVE,
};

async function candidate(fields: Partial<WithdrawalRequest> = {}) {
  const { id, amountUnits } = await house.accept(fields);
  return { id, amountUnits, gasLimit: 21_000n, gasPriceAtoken: 1n, entersCode: false };
}

const nextNonce = async () => (await readHotWallet(house.database, WALLET))?.nextNonce;

it("opens a wallet together with its switch, where the worker dies behind its first commit", async () => {
  const { database } = house;
  const wallet = freshAddress();
  await registerTestWallets(house.ledger.owner, wallet);
  const died = new InterruptedSql(database);
  died.interrupt("answer lost", 1);
  await createHotWallet(died, { wallet, firstNonce: 0n }).catch(() => undefined);
  expect(died.hasHappened).toBe(true);
  // Without it a kill switch or an incident would not wait for a signature that is being stored.
  expect(
    await database.query(
      `SELECT h.wallet AS lane, f.wallet AS switch FROM hot_wallet h
         FULL JOIN signing_freeze f USING (wallet) WHERE wallet = $1`,
      [wallet],
    ),
  ).toEqual([{ lane: wallet, switch: wallet }]);
});

describe("the commit of a slot", () => {
  it("gives nothing while signing is frozen, whoever froze it a moment ago", async () => {
    const waiting = await candidate();
    await freezeSigning(house.database, WALLET, "test");
    const result = await takeSlots(house.database, lease, [waiting], rules);
    expect(result).toMatchObject({ taken: [], limit: "frozen" });
    await releaseSigning(house.database, WALLET);
    expect(await nextNonce()).toBe(5n);
  });

  it("gives nothing against a balance that is older than what is booked", async () => {
    await house.database.query(`UPDATE hot_wallet SET settled_height = 11`);
    const result = await takeSlots(house.database, lease, [await candidate()], rules);
    expect(result).toMatchObject({ taken: [], limit: "stale-balance" });
    await house.database.query(`UPDATE hot_wallet SET settled_height = 10`);
  });

  it("gives nothing under a lease that is over, and takes back nothing by failing", async () => {
    const stale = { ...lease, epoch: lease.epoch - 1n };
    await expect(
      takeSlots(house.database, stale, [await candidate()], rules),
    ).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(await nextNonce()).toBe(5n);
  });

  it("gives one nonce to a candidate, however often and from how many sides it is asked", async () => {
    const wanted = await candidate();
    const results = await Promise.all(
      Array.from({ length: 8 }, () => takeSlots(house.database, lease, [wanted], rules)),
    );
    expect(results.flatMap(({ taken }) => taken)).toEqual([wanted.id]);
    expect(await nextNonce()).toBe(6n);
  });

  it("counts no fees of nonces that a retired wallet has left open for ever", async () => {
    const { database } = house;
    const lost = freshAddress();
    await registerTestWallets(house.ledger.owner, lost);
    await createHotWallet(database, { wallet: lost, firstNonce: 0n });
    const other = await acquireLease(database, { wallet: lost, owner: "other", leaseMs: 60_000 });
    if (other === undefined) throw new Error("no lease");
    // Of a budget of 1 TOKEN it takes all but a thousandth, and the next one takes that.
    const most = { gasLimit: 999_000n, gasPriceAtoken: 1_000_000_000_000n };
    const whole = { ...(await candidate()), ...most };
    expect((await takeSlots(database, other, [whole], rules)).taken).toEqual([whole.id]);
    const dear = { gasLimit: 2_000_000n, gasPriceAtoken: 1_000_000_000n };
    const waiting = { ...(await candidate()), ...dear };
    expect(await takeSlots(database, lease, [waiting], rules)).toMatchObject({
      taken: [],
      limit: "fee-budget",
    });
    for (const status of ["draining", "retired"]) {
      await house.ledger.owner.query(`UPDATE wallet SET status = $2 WHERE address = $1`, [
        lost,
        status,
      ]);
    }
    expect((await takeSlots(database, lease, [waiting], rules)).taken).toEqual([waiting.id]);
  });

  it("gives nonces without gaps in the order of the requests", async () => {
    const first = await candidate();
    const second = await candidate();
    const before = (await nextNonce()) ?? 0n;
    await takeSlots(house.database, lease, [second, first], rules);
    expect((await house.read(first.id)).nonce).toBe(before);
    expect((await house.read(second.id)).nonce).toBe(before + 1n);
  });
});

describe("what a balance is counted against", () => {
  /** A balance of a TOKEN and a half behind all that was given so far, at this nonce of the chain. */
  const at = (nonce: bigint) => ({
    ...rules,
    budget: { ...rules.budget, balanceAtoken: (3n * TOKEN) / 2n, nonce },
  });

  it("are the nonces that are not mined yet at its block, and all again on a chain that lost them", async () => {
    const { database } = house;
    const first = (await nextNonce()) ?? 0n;
    const [paid, behind, last] = [await candidate(), await candidate(), await candidate()];
    expect((await takeSlots(database, lease, [paid], at(first))).taken).toEqual([paid.id]);
    expect(await takeSlots(database, lease, [behind], at(first))).toMatchObject({
      taken: [],
      uncovered: [behind.id],
    });
    expect((await takeSlots(database, lease, [behind], at(first + 1n))).taken).toEqual([behind.id]);
    // A node that is behind, or a chain that was put back, shows the nonce and the balance of before.
    for (const nonce of [first, first + 1n]) {
      expect(await takeSlots(database, lease, [last], at(nonce))).toMatchObject({
        taken: [],
        uncovered: [last.id],
      });
    }
    const steps = [{ id: paid.id, reason: "a person has to look" }];
    await freezeWithdrawals(database, steps, { lease, signing: undefined });
    expect((await takeSlots(database, lease, [last], at(first + 2n))).taken).toEqual([]);
    expect((await sumOpenSlots(database, WALLET, first + 2n)).reservedAtoken).toBe(TOKEN + 21_000n);
    const every = await sumOpenSlots(database, WALLET);
    expect(await sumOpenSlots(database, WALLET, 0n)).toEqual(every);
    expect(every.count).toBe((await sumOpenSlots(database, WALLET, first + 2n)).count);
  });
});

describe("what changes between the look at the requests and their slots", () => {
  /** The worker's database, with something done by others before the first slot is written. */
  function interrupted(happens: () => Promise<unknown>): SqlDatabase {
    let isDone = false;
    return {
      ...house.database,
      transaction: (work) =>
        house.database.transaction((tx) =>
          work({
            async query<Row>(text: string, values?: readonly unknown[]): Promise<Row[]> {
              if (text.includes("INSERT INTO nonce_slot") && !isDone) {
                isDone = true;
                await happens();
              }
              return tx.query<Row>(text, values);
            },
          }),
        ),
    };
  }

  it("is read again where its destination has become a wallet of ours: the others get theirs", async () => {
    const destination = freshAddress();
    const own = await candidate({ destination });
    const other = await candidate();
    const database = interrupted(() => registerTestWallets(house.ledger.owner, destination));
    const { taken } = await takeSlots(database, lease, [own, other], rules);
    expect(taken).toEqual([other.id]);
    expect((await house.read(own.id)).status).toBe("accepted");
  });
});

describe("the commit of a signature", () => {
  const attemptOf = (slotId: string, withdrawalId: never, digit: string) => ({
    slotId,
    withdrawalId,
    n: 0,
    kind: "payment" as const,
    raw: `0x${digit.repeat(2)}` as const,
    hash: `0x${digit.repeat(64)}` as Hash32,
    gasLimit: 21_000n,
    gasPriceAtoken: 1n,
    valueAtoken: TOKEN,
  });

  it("stores nothing while frozen, and the first signature of a slot for ever", async () => {
    const query = { wallet: WALLET, statuses: ["slotted", "signed"] as const, limit: 1 };
    const [slot] = await readLiveSlots(house.database, query);
    if (slot === undefined) throw new Error("no slot");
    const id = slot.withdrawalId as never;
    await freezeSigning(house.database, WALLET, "test");
    expect(
      await storeAttempts(house.database, lease, [attemptOf(slot.slotId, id, "a")], RULES),
    ).toBe(false);
    await releaseSigning(house.database, WALLET);
    expect((await house.read(slot.withdrawalId)).hashes).toEqual([]);
    await storeAttempts(house.database, lease, [attemptOf(slot.slotId, id, "b")], RULES);
    await storeAttempts(house.database, lease, [attemptOf(slot.slotId, id, "c")], RULES);
    const signed = await house.read(slot.withdrawalId);
    expect(signed.hashes).toEqual([`0x${"b".repeat(64)}`]);
    expect(signed.status).toBe("signed");
  });

  it("raises what a slot reserves where its first attempt costs more, and writes no slot otherwise", async () => {
    const wanted = [await candidate(), await candidate()];
    expect((await takeSlots(house.database, lease, wanted, rules)).taken).toHaveLength(2);
    const slots = () =>
      house.database.query<{ id: string; fee: string; reserved: string; ctid: string }>(
        `SELECT id::text, fee_reserved_atoken::text AS fee, reserved_atoken::text AS reserved, ctid
           FROM nonce_slot WHERE withdrawal_id = ANY ($1::text[]) ORDER BY id`,
        [wanted.map(({ id }) => id)],
      );
    const store = async (gasPriceAtoken: bigint) => {
      const attempts = (await slots()).map((slot, index) => ({
        ...attemptOf(slot.id, wanted[index]?.id as never, `${index + 1}`),
        gasPriceAtoken: index === 0 ? 1n : gasPriceAtoken,
      }));
      await storeAttempts(house.database, lease, attempts, RULES);
    };
    const before = await slots();
    await store(1n);
    expect(await slots()).toEqual(before);
    // Its bytes are stored already, and what is asked for is dearer.
    await store(3n);
    const fee = { fee: "63000", reserved: (TOKEN + 63_000n).toString() };
    expect(await slots()).toMatchObject([before[0], fee]);
  });

  it("is read back as it was stored, the oldest first, with what was taken over from the chain", async () => {
    const wanted = await candidate();
    const fromNonce = (await nextNonce()) ?? 0n;
    await takeSlots(house.database, lease, [wanted], rules);
    const read = async () => {
      const statuses = ["slotted", "signed"] as const;
      const query = { wallet: WALLET, statuses, fromNonce, limit: 1 };
      const [slot] = await readLiveSlots(house.database, query);
      if (slot === undefined) throw new Error("no slot");
      return slot;
    };
    const { slotId, attempts } = await read();
    expect(attempts).toEqual([]);
    const stored = attemptOf(slotId, wanted.id as never, "d");
    await storeAttempts(house.database, lease, [stored], RULES);
    const prefix = `0x${"e".repeat(62)}`;
    const dear = { gasLimit: 2n ** 64n - 1n, gasPriceAtoken: 10n ** 30n };
    await house.ledger.owner.query(
      `INSERT INTO withdrawal_attempt (slot_id, n, kind, adopted, hash, gas_limit, gas_price_atoken)
       SELECT $1, n, 'cancel', true, $2 || n, $3::numeric, $4::numeric
         FROM unnest(ARRAY[12, 11]) AS n`,
      [slotId, prefix, dear.gasLimit.toString(), dear.gasPriceAtoken.toString()],
    );
    const { raw, hash, gasLimit, gasPriceAtoken } = stored;
    expect((await read()).attempts).toEqual([
      { n: 0, kind: "payment", raw, hash, gasLimit, gasPriceAtoken },
      { n: 11, kind: "cancel", raw: undefined, hash: `${prefix}11`, ...dear },
      { n: 12, kind: "cancel", raw: undefined, hash: `${prefix}12`, ...dear },
    ]);
  });

  it("is refused to a worker that gave its lease back", async () => {
    await releaseLease(house.database, lease);
    const next = await acquireLease(house.database, {
      wallet: WALLET,
      owner: randomUUID(),
      leaseMs: 60_000,
    });
    expect(next?.epoch).toBe(lease.epoch + 1n);
    await expect(storeAttempts(house.database, lease, [], RULES)).rejects.toMatchObject({
      code: "LEASE_LOST",
    });
  });
});
